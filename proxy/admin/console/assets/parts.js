// Parts that several views share: tables, badges, moments, notices, the question before an action.
import { attr, fresh, h, put, show } from './dom.js';
import { full, when } from './format.js';
import { t } from './i18n.js';

export const classes = ['interactive', 'release', 'bulk', 'background'];

// scroller puts a wide table into a region that the keyboard can scroll too.
export const scroller = (label, table) => h('div', { class: 'scroll', role: 'group', 'aria-label': label, tabindex: '0' }, table);

// moment is a <time> whose title is the whole moment.
export function moment(node, at) {
  if (!at) {
    attr(node, 'datetime', null);
    attr(node, 'title', null);
    put(node, '–');
    return;
  }
  const date = at instanceof Date ? at : new Date(at);
  attr(node, 'datetime', date.toISOString());
  attr(node, 'title', full(date));
  put(node, when(date));
}

// select is a labelled choice; options are [value, text] pairs.
export function select(label, options, chosen, onchange) {
  const control = h('select', { id: fresh('select'), onchange: () => onchange(control.value) },
    options.map(([code, text]) => h('option', { value: code, selected: code === chosen }, text)));
  return { control, node: h('div', { class: 'pick' }, h('label', { for: control.id }, label), control) };
}

// notice is a line that stands above a view while something is not as usual.
export function notice(kind) {
  const text = h('span'), node = h('div', { class: `notice ${kind}`, hidden: true }, text);
  return {
    node,
    set(message) {
      if (message) put(text, message);
      show(node, Boolean(message));
    },
  };
}

// stale is the notice that the figures are old; fault is what the shell tells a view.
export function staleness() {
  const old = notice('warn');
  return {
    node: old.node,
    fault(what) {
      old.set(!what ? '' : what.state === 'locked' ? t('stale.locked') : what.at ? t('stale.since', { at: when(what.at) }) : t('stale.never'));
    },
  };
}

// confirm asks before something is done and does it: act() may throw, its message stands in the dialog then. Resolves to what act returned, or undefined
// when the reader thought better of it. facts are [name, value] pairs.
export function confirm({ title, what, facts, yes, danger, act, blame }) {
  const head = fresh('title'), told = fresh('told');
  const fault = h('p', { class: 'fault', role: 'alert', hidden: true });
  const no = h('button', { type: 'button', autofocus: true, onclick: () => dialog.close() }, t('cancel'));
  const go = h('button', { type: 'button', class: danger ? 'danger' : 'primary' }, yes);
  const dialog = h('dialog', { 'aria-labelledby': head, 'aria-describedby': told },
    h('h2', { id: head }, title), h('p', { id: told }, what),
    h('dl', { class: 'facts' }, facts.map(([name, text]) => h('div', {}, h('dt', {}, name), h('dd', {}, text)))),
    fault, h('div', { class: 'actions' }, no, go));
  let result;
  go.addEventListener('click', async () => {
    if (go.getAttribute('aria-disabled')) return;
    attr(go, 'aria-disabled', 'true');
    show(fault, false);
    try {
      result = await act();
      dialog.close();
    } catch (error) {
      put(fault, blame(error));
      show(fault, true);
      attr(go, 'aria-disabled', null);
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  return new Promise(done => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      done(result);
    });
  });
}
