// Two operators have changed the settings: mine and theirs side by side, field by field.
import { fresh, h, put, show } from './dom.js';
import { number, when } from './format.js';
import { count, t } from './i18n.js';
import { describe, differing, merged, same, titleOf } from './model.js';
import { scroller } from './parts.js';

// conflict shows into node what base, mine (overrides) and theirs (a document) differ in. take(overrides) saves what was chosen, leave() gives mine up.
export function conflict(node, { base, mine, theirs, take, leave }) {
  const differences = differing(base.overrides, mine, theirs.overrides);
  const head = fresh('conflict'), need = h('p', { class: 'fault', role: 'alert', hidden: true });
  // What only one side changed is chosen already; what both did is the reader's to say.
  const picks = differences.map(one => same(one.base, one.theirs) ? 'mine' : same(one.base, one.mine) ? 'theirs' : '');
  const rows = differences.map((one, at) => row(one, at));
  const both = picks.filter(pick => pick === '').length;

  function option(one, at, side, group, name) {
    const radio = h('input', { type: 'radio', name: group, id: fresh('side'), value: side, checked: picks[at] === side, onchange: () => {
      picks[at] = side;
      show(need, false);
    } });
    return h('td', { class: `side ${side}` }, h('div', { class: 'check' }, radio, h('label', { for: radio.id },
      h('span', { class: 'said' }, `${name}, ${t(`conflict.${side}`)}: `), describe(one.path, one[side]))));
  }

  function row(one, at) {
    const group = fresh('group'), name = titleOf(one.path);
    return h('tr', { 'data-path': one.path.join('.'), 'data-both': picks[at] === '' || null }, h('th', { scope: 'row' }, name, picks[at] === '' ? h('span', { class: 'badge', 'data-kind': 'pending' }, t('conflict.both')) : null),
      h('td', { class: 'before' }, describe(one.path, one.base)), option(one, at, 'mine', group, name), option(one, at, 'theirs', group, name));
  }

  function save() {
    const open = picks.findIndex(pick => pick === '');
    if (open >= 0) {
      put(need, t('conflict.choose', { field: titleOf(differences[open].path) }));
      show(need, true);
      rows[open].querySelector('input').focus();
      return;
    }
    take(merged(theirs.overrides, differences, picks.map(pick => pick === 'mine')));
  }

  const title = h('h2', { id: head, tabindex: '-1' }, t('conflict.title'));
  const table = h('table', { class: 'conflict' }, h('caption', { class: 'said' }, t('conflict.title')), h('thead', {}, h('tr', {},
    h('th', { scope: 'col' }, t('conflict.field')), h('th', { scope: 'col' }, t('conflict.before', { n: number(base.revision) })),
    h('th', { scope: 'col' }, t('conflict.mine')), h('th', { scope: 'col' }, t('conflict.theirs')))), h('tbody', {}, rows));
  node.replaceChildren(h('section', { class: 'card conflict', 'aria-labelledby': head }, title,
    h('p', {}, t('conflict.what', { n: number(theirs.revision), by: theirs.updatedBy || '–', at: when(theirs.updatedAt) }), ' ',
      differences.length ? count('conflict.differ', differences.length, number(differences.length)) : t('conflict.none'), ' ', both ? count('conflict.undecided', both, number(both)) : ''),
    differences.length ? scroller(t('conflict.title'), table) : null, need,
    h('div', { class: 'actions' }, h('button', { type: 'button', onclick: leave }, t('conflict.leave')),
      differences.length ? h('button', { type: 'button', class: 'primary', onclick: save }, t('conflict.save')) : null)));
  title.focus();
}
