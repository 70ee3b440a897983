// One session beside the table: all that is known of it, and what can be done with it.
import { call } from './api.js';
import { attr, fresh, h, keyed, put, say, show } from './dom.js';
import { bytes, full, number, span, when } from './format.js';
import { count, t } from './i18n.js';
import { live } from './live.js';
import { classes, confirm, select } from './parts.js';
import { classOf, placeOf, sentOf, why } from './session.js';

// facts are what the panel says of a session, as [word, text] pairs.
function facts(one) {
  const window = one.startsWindow ? t('detail.between', { from: when(one.startsWindow.earliest), to: when(one.startsWindow.latest) }) : null;
  return [
    ['state', one.pausedByOperator ? t('detail.pausedState', { state: t(`state.${one.state}`) }) : t(`state.${one.state}`)],
    one.state === 'waiting' ? ['place', placeOf(one)] : null,
    one.why ? ['why', why(one)] : null,
    ['principal', one.principal], ['object', one.object], ['client', one.client],
    ['class', classOf(one)],
    ['size', bytes(one.sizeBytes)],
    ['sent', sentOf(one)],
    one.bundleObjects > 0 ? ['bundle', count('detail.objects', one.bundleObjects, number(one.bundleObjects))] : null,
    ['arrived', full(one.arrivedAt)],
    ['waited', span(one.waitedSeconds)],
    one.startedAt ? ['started', full(one.startedAt)] : null,
    one.startsAt && !one.startedAt ? ['start', full(one.startsAt)] : null,
    window && !one.startedAt ? ['range', window] : null,
    ['protocol', one.protocol ? t('detail.speaks') : t('detail.plain')],
    one.held > 0 ? ['held', number(one.held)] : null,
  ].filter(Boolean);
}

// possible says which actions the state of a session allows.
const possible = one => ({
  front: one.state === 'waiting',
  back: one.state === 'waiting',
  class: one.state === 'waiting',
  pause: !one.pausedByOperator && (one.state === 'waiting' || one.state === 'active' && one.protocol),
  resume: one.pausedByOperator,
  kick: one.state === 'waiting' || one.state === 'active',
});

function blame(error) {
  if (error.status === 404) return t('action.gone');
  if (error.status === 409) return t('action.conflict', { why: error.message });
  if (error.status === 429) return t('action.many', { wait: span(error.retryAfter || 1) });
  if (error.status === 401) return t('status.locked');
  if (error.status === 0) return t('action.lost');
  return t('action.failed', { status: error.status, why: error.message });
}

// detail is the panel. ids() are the clear ids while they are shown, else null; changed is called after an action, closed when the panel is put away.
export function detail({ ids, changed, closed }) {
  const head = fresh('detail');
  const title = h('h2', { id: head, tabindex: '-1' }), body = h('dl', { class: 'facts' }), gone = h('p', { class: 'notice plain', hidden: true });
  const buttons = {};
  const button = (name, kind) => buttons[name] = h('button', { type: 'button', class: kind, 'data-action': name, onclick: () => act(name) }, t(`action.${name}`));
  const pick = select(t('action.toClass'), classes.map(one => [one, t(`class.${one}`)]), 'bulk', () => {});
  const shift = h('div', { class: 'shift' }, pick.node, button('class'));
  const tools = h('div', { class: 'tools' }, button('front'), button('back'), button('pause'), button('resume'), shift, button('kick', 'danger'));
  const node = h('aside', { class: 'card detail', 'aria-labelledby': head, hidden: true },
    h('div', { class: 'row' }, title, h('button', { type: 'button', class: 'quiet', onclick: close }, t('close'))), gone, tools, h('h3', {}, t('detail.facts')), body);
  let id = null, feed = null, last = null, touched = false;

  node.addEventListener('keydown', event => {
    if (event.key === 'Escape') close();
  });
  pick.control.addEventListener('change', () => { touched = true; });

  function set(one) {
    last = one;
    put(title, t('detail.title', { id: one.id }));
    keyed(body, facts(one), ([word]) => word, ([word]) => h('div', {}, h('dt', {}, t(`table.${word}`)), h('dd', {})), (line, [, text]) => put(line.lastChild, text));
    const can = possible(one), at = document.activeElement;
    for (const [name, control] of Object.entries(buttons)) show(control, can[name]);
    show(shift, can.class);
    if (!touched && document.activeElement !== pick.control) pick.control.value = one.class;
    show(gone, false);
    // The button under the reader's hands may have gone with the state.
    if (node.contains(at) && at.closest('[hidden]')) title.focus();
  }

  function ended() {
    for (const control of Object.values(buttons)) show(control, false);
    show(shift, false);
    put(gone, t('detail.gone'));
    show(gone, true);
    feed?.stop();
  }

  function open(next) {
    feed?.stop();
    id = next;
    touched = false;
    last = null;
    put(title, t('detail.title', { id }));
    body.replaceChildren();
    body.known?.clear();
    for (const control of Object.values(buttons)) show(control, false);
    show(shift, false);
    show(gone, false);
    show(node, true);
    title.focus();
    feed = live({
      ask,
      show: set,
      // That the figures are old is told above the table; only the end of the session is told here.
      report({ error }) {
        if (error?.status === 404) ended();
      },
    });
  }

  async function ask(signal) {
    const clear = ids(), look = clear && !clear.has(id);
    const one = await call('session', { id, query: { ids: look ? 'clear' : '' }, signal });
    if (look) clear.learn([one]);
    return clear ? clear.fill(one) : one;
  }

  function close() {
    feed?.stop();
    feed = null;
    id = null;
    show(node, false);
    closed();
  }

  async function act(name) {
    if (!last) return;
    const one = last, target = pick.control.value;
    const values = { place: placeOf(one), class: t(`class.${one.class}`), to: t(`class.${target}`), sent: bytes(one.sentBytes) };
    const kind = (name === 'kick' || name === 'pause') && one.state === 'active' ? `${name}Active` : name;
    const done = await confirm({
      title: t(`ask.${name}`), what: t(`ask.${kind}.what`, values), yes: t(`ask.${name}.yes`), danger: name === 'kick', blame,
      facts: [[t('table.session'), one.id], [t('table.principal'), one.principal], [t('table.object'), one.object], [t('table.class'), classOf(one)], [t('table.sent'), sentOf(one)]],
      act: () => {
        if (name === 'front' || name === 'back') return call('move', { id: one.id, body: { to: name }, interactive: true });
        if (name === 'class') return call('move', { id: one.id, body: { class: target }, interactive: true });
        return call(name, { id: one.id, body: {}, interactive: true });
      },
    });
    if (!done) return;
    touched = false;
    say(t(`done.${name}`, { id: one.id }));
    changed();
    if (name === 'kick' && id === one.id) {
      ended();
      title.focus();
    } else {
      feed?.now();
    }
  }

  return { node, open, id: () => id, now: () => feed?.now(), stop: () => feed?.stop() };
}
