// The sessions: a table by pages, filters, clear ids on demand, and the details of one beside it.
import { call } from './api.js';
import { detail } from './detail.js';
import { attr, fresh, h, keyed, put, say, show } from './dom.js';
import { bytes, number, span } from './format.js';
import { count, t } from './i18n.js';
import { clearIDs } from './ids.js';
import { live } from './live.js';
import { classes, moment, scroller, select, staleness } from './parts.js';
import { classOf, placeOf, sentOf, why } from './session.js';

const states = ['waiting', 'active', 'remembered', 'all'], sizes = ['25', '100', '500'];
const columns = ['place', 'session', 'principal', 'object', 'class', 'size', 'sent', 'waited', 'start', 'why'];
const numbers = new Set(['size', 'sent', 'waited']);

// What the reader chose stands as long as the page is open; clear ids are asked for anew on each visit of the view.
const chosen = { state: 'waiting', class: '', principal: '', limit: '100' };

// fromAddress takes the filters that a link brings.
function fromAddress() {
  const query = new URLSearchParams(location.hash.split('?')[1] || '');
  for (const name of ['state', 'class']) {
    if (query.has(name)) chosen[name] = query.get(name);
  }
  if (!states.includes(chosen.state)) chosen.state = 'waiting';
  if (!classes.includes(chosen.class)) chosen.class = '';
}

function row(one, open) {
  const button = h('button', { type: 'button', class: 'id', onclick: () => open(one.id, button) }, one.id);
  return h('tr', { 'data-id': one.id }, h('td', { class: 'n place' }), h('th', { scope: 'row' }, button), h('td', { class: 'long' }), h('td', { class: 'long' }),
    h('td', {}, h('span', { class: `swatch line-${one.class}`, 'aria-hidden': 'true' }), h('span')), h('td', { class: 'n' }), h('td', { class: 'n' }), h('td', { class: 'n' }),
    h('td', {}, h('time')), h('td', { class: 'why' }));
}

function fillRow(node, one) {
  const cells = node.children;
  put(cells[0], placeOf(one));
  for (const [at, text] of [[2, one.principal], [3, one.object]]) {
    put(cells[at], text);
    attr(cells[at], 'title', text);
  }
  attr(cells[4].firstChild, 'class', `swatch line-${one.class}`);
  put(cells[4].lastChild, classOf(one));
  put(cells[5], bytes(one.sizeBytes));
  put(cells[6], sentOf(one));
  put(cells[7], span(one.waitedSeconds));
  moment(cells[8].firstChild, one.startedAt || one.startsAt);
  put(cells[9], why(one));
  attr(cells[9], 'data-why', one.why || null);
}

// filters is the form above the table; changed is called when the first page is to be asked anew.
function filters(changed) {
  const pickState = select(t('sessions.state'), states.map(one => [one, t(`state.${one}`)]), chosen.state, text => set('state', text));
  const pickClass = select(t('table.class'), [['', t('sessions.anyClass')], ...classes.map(one => [one, t(`class.${one}`)])], chosen.class, text => set('class', text));
  const pickSize = select(t('sessions.perPage'), sizes.map(one => [one, number(+one)]), chosen.limit, text => set('limit', text));
  const principal = h('input', { id: fresh('principal'), type: 'search', maxlength: '256', autocomplete: 'off', spellcheck: 'false', value: chosen.principal });
  const clear = h('input', { id: fresh('clear'), type: 'checkbox', onchange: () => changed() });

  function set(name, text) {
    chosen[name] = text;
    changed();
  }

  const form = h('form', { class: 'filters', role: 'search', 'aria-label': t('sessions.filters') }, pickState.node, pickClass.node,
    h('div', { class: 'pick grow' }, h('label', { for: principal.id }, t('sessions.principal')), principal), h('button', { type: 'submit' }, t('sessions.find')), pickSize.node,
    h('div', { class: 'check' }, clear, h('label', { for: clear.id, title: t('sessions.clearHint') }, t('sessions.clear'))));
  form.addEventListener('submit', event => {
    event.preventDefault();
    set('principal', principal.value.trim());
  });
  principal.addEventListener('search', () => {
    if (principal.value === '' && chosen.principal) set('principal', '');
  });
  return {
    node: form,
    clear: () => clear.checked,
    refresh() {
      pickState.control.value = chosen.state;
      pickClass.control.value = chosen.class;
    },
  };
}

export function sessionsView(main, report) {
  fromAddress();
  const old = staleness(), sub = h('p', { class: 'sub' });
  const form = filters(first), body = h('tbody');
  const table = h('table', { class: 'sessions' }, h('caption', { class: 'said' }, t('nav.sessions')),
    h('thead', {}, h('tr', {}, columns.map(one => h('th', { scope: 'col', class: numbers.has(one) || one === 'place' ? 'n' : null }, t(`table.${one}`))))), body);
  const none = h('p', { class: 'none', hidden: true }, t('sessions.none'));
  const shown = h('span', { class: 'shown' });
  const back = h('button', { type: 'button', onclick: () => turn(-1) }, t('sessions.back')), next = h('button', { type: 'button', onclick: () => turn(1) }, t('sessions.next'));
  const pages = h('nav', { class: 'pages', 'aria-label': t('sessions.pages') }, back, shown, next);
  const clear = clearIDs();
  const panel = detail({ ids: () => form.clear() ? clear : null, changed: () => feed.now(), closed });
  const split = h('div', { class: 'split' }, h('div', { class: 'list' }, scroller(t('nav.sessions'), table), none, pages), panel.node);
  main.append(h('div', { class: 'head' }, h('h1', {}, t('nav.sessions')), sub), old.node, form.node, split);

  // The cursors of the pages so far; the last is that of the page that is shown.
  let cursors = [''], following = null, before = 0, opener = null, told = false, last = null;

  function first() {
    last = null;
    if (!form.clear()) clear.forget();
    cursors = [''];
    before = 0;
    feed.now();
    panel.now();
  }

  function turn(by) {
    if (by > 0 && following && !next.getAttribute('aria-disabled')) {
      before += body.children.length;
      cursors.push(following);
    } else if (by < 0 && cursors.length > 1) {
      cursors.pop();
      before = cursors.length === 1 ? 0 : Math.max(0, before - +chosen.limit);
    } else {
      return;
    }
    told = true;
    last = null;
    feed.now();
  }

  function open(id, button) {
    opener = button;
    attr(split, 'data-open', true);
    mark(id);
    panel.open(id);
  }

  function closed() {
    attr(split, 'data-open', null);
    mark(null);
    if (opener?.isConnected) opener.focus();
    else main.querySelector('h1').focus();
    opener = null;
  }

  function mark(id) {
    for (const one of body.children) attr(one, 'aria-current', one.dataset.id === id ? 'true' : null);
  }

  function set(page) {
    following = page.next;
    keyed(body, page.sessions, one => one.id, one => row(one, open), fillRow);
    mark(panel.id());
    put(sub, count('sessions.total', page.total, number(page.total)));
    const end = before + page.sessions.length;
    put(shown, page.sessions.length ? t('sessions.shown', { from: number(before + 1), to: number(end), total: number(Math.max(page.total, end)) }) : '');
    attr(back, 'aria-disabled', cursors.length > 1 ? null : 'true');
    attr(next, 'aria-disabled', following ? null : 'true');
    show(none, page.sessions.length === 0);
    show(table.parentNode, page.sessions.length > 0);
    if (told) say(shown.textContent);
    told = false;
  }

  async function ask(signal) {
    const look = form.clear() && clear.due(last);
    const query = { state: chosen.state, class: chosen.class, principal: chosen.principal, limit: chosen.limit, after: cursors.at(-1), ids: look ? 'clear' : '' };
    const page = await asked(query, signal);
    if (look) clear.learn(page.sessions);
    last = page.sessions;
    return form.clear() ? { ...page, sessions: page.sessions.map(clear.fill) } : page;
  }

  async function asked(query, signal) {
    try {
      return await call('sessions', { query, signal });
    } catch (error) {
      // A cursor of a page that is gone: the first page is the honest answer.
      if (error.status !== 400 || cursors.length === 1) throw error;
      cursors = [''];
      before = 0;
      return call('sessions', { query: { ...query, after: '' }, signal });
    }
  }

  const feed = live({ ask, show: set, report });
  return {
    now() {
      feed.now();
      panel.now();
    },
    fault: old.fault,
    routed() {
      fromAddress();
      form.refresh();
      first();
    },
    stop() {
      feed.stop();
      panel.stop();
    },
  };
}
