// The controls of the settings form. An editor gets {value, field, edit}: the value to show, the field's path, and what to call with the value after a
// change of the reader's; it returns nodes. Each control carries its path in data-field, by which faults find it.
import { attr, fresh, h, put } from './dom.js';
import { bytes, weekday } from './format.js';
import { has, t } from './i18n.js';
import { days, size, whole } from './model.js';
import { classes, scroller } from './parts.js';

const word = (kind, code) => has(`${kind}.${code}`) ? t(`${kind}.${code}`) : code;

// text is one labelled text control with room for its fault. parse turns what was typed into the value.
export function text({ label, value, field, parse = same => same, edit, wide = 10, hidden, hint, list, placeholder, numeric }) {
  const input = h('input', { type: 'text', id: fresh('input'), autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', value: value ?? '', 'data-field': field,
    inputmode: numeric ? 'numeric' : null, list, placeholder, size: wide });
  const told = hint ? h('span', { class: 'soft', id: fresh('hint') }) : null;
  if (told) attr(input, 'aria-describedby', told.id);
  const tell = now => told && put(told, hint(now));
  tell(value);
  input.addEventListener('input', () => {
    const parsed = parse(input.value);
    tell(parsed);
    edit(parsed, input);
  });
  return h('div', { class: 'control', 'data-holder': field }, h('label', { for: input.id, class: hidden ? 'said' : null }, label), h('span', { class: 'inline' }, input, told));
}

const readable = n => typeof n === 'number' && n >= 1024 ? `= ${bytes(n)}` : '';

export const bytesText = options => text({ ...options, parse: size, hint: readable, wide: 15 });

export function choice({ label, value, field, options, edit, hidden }) {
  const known = options.includes(value) || value === undefined ? options : [...options, value];
  const control = h('select', { id: fresh('select'), 'data-field': field, onchange: () => edit(control.value) },
    known.map(one => h('option', { value: one, selected: one === value }, one === '' ? t('principal.byRule') : word(field.split('.').at(-1), one))));
  return h('div', { class: 'control', 'data-holder': field }, h('label', { for: control.id, class: hidden ? 'said' : null }, label), control);
}

export function flag({ label, value, field, edit }) {
  const control = h('input', { type: 'checkbox', id: fresh('flag'), checked: value, 'data-field': field, onchange: () => edit(control.checked) });
  return h('div', { class: 'control check', 'data-holder': field }, control, h('label', { for: control.id }, label));
}

export function weights({ value, field, edit }) {
  const now = { ...value };
  return h('div', { class: 'four' }, classes.map(one => text({
    label: t(`class.${one}`), value: now[one], field: `${field}.${one}`, parse: whole, numeric: true,
    edit(n) {
      now[one] = n;
      edit({ ...now });
    },
  })));
}

export function quotas({ value, field, edit }) {
  const now = { ...value };
  const set = name => n => {
    now[name] = n;
    edit({ ...now });
  };
  return h('div', { class: 'four' },
    bytesText({ label: t('quota.perDay'), value: now.bytesPerDay ?? 0, field: `${field}.bytesPerDay`, edit: set('bytesPerDay') }),
    bytesText({ label: t('quota.perWeek'), value: now.bytesPerWeek ?? 0, field: `${field}.bytesPerWeek`, edit: set('bytesPerWeek') }),
    text({ label: t('window.zone'), value: now.zone ?? 'UTC', field: `${field}.zone`, list: 'zones', wide: 20, edit: set('zone') }));
}

// zones is the list that the zone controls offer.
export function zones() {
  const names = typeof Intl.supportedValuesOf === 'function' ? ['UTC', ...Intl.supportedValuesOf('timeZone')] : ['UTC'];
  return h('datalist', { id: 'zones' }, [...new Set(names)].map(one => h('option', { value: one })));
}

// spanLine is one stretch of open hours.
function spanLine(span, field, touch, remove) {
  const on = new Set(span.days || days);
  const boxes = days.map((day, at) => {
    const box = h('input', { type: 'checkbox', id: fresh('day'), checked: on.has(day), onchange: () => {
      if (box.checked) on.add(day);
      else on.delete(day);
      if (on.size === days.length) delete span.days;
      else span.days = days.filter(one => on.has(one));
      touch();
    } });
    return h('span', { class: 'day' }, box, h('label', { for: box.id, title: weekday(at, 'long') }, weekday(at)));
  });
  const time = name => text({ label: t(`window.${name}`), value: span[name], field: `${field}.${name}`, wide: 5, placeholder: '22:00', edit(now) {
    span[name] = now;
    touch();
  } });
  return h('fieldset', { class: 'span', 'data-holder': field, 'data-field': `${field}.days`, tabindex: '-1' }, h('legend', { class: 'said' }, t('window.span')), h('div', { class: 'days' }, boxes), h('div', { class: 'times' }, time('from'), time('to')),
    h('button', { type: 'button', class: 'quiet', onclick: remove }, t('remove')));
}

// classWindow edits the hours of one class; value is undefined while it is always open.
function classWindow(name, all, field, edit) {
  const box = h('fieldset', { class: 'window', 'data-holder': `${field}.${name}` });
  const touch = () => edit({ ...all });

  function draw(focus) {
    const window = all[name], path = `${field}.${name}`;
    const limited = h('input', { type: 'checkbox', id: fresh('limited'), checked: Boolean(window), 'data-field': path, onchange: () => {
      if (limited.checked) all[name] = { zone: Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC', outsideShare: 0, open: [{ from: '22:00', to: '06:00' }] };
      else delete all[name];
      touch();
      draw(() => box.querySelector('input'));
    } });
    const head = [h('legend', {}, h('span', { class: `swatch line-${name}`, 'aria-hidden': 'true' }), t(`class.${name}`)),
      h('div', { class: 'control check' }, limited, h('label', { for: limited.id }, t('window.limited')))];
    if (!window) {
      box.replaceChildren(...head, h('p', { class: 'soft' }, t('window.always')));
    } else {
      window.open ??= [];
      const add = h('button', { type: 'button', 'data-field': `${path}.open`, onclick: () => {
        window.open.push({ from: '22:00', to: '06:00' });
        touch();
        draw(() => box.querySelector('fieldset.span:last-of-type input'));
      } }, t('window.add'));
      box.replaceChildren(...head, h('div', { class: 'four' },
        text({ label: t('window.zone'), value: window.zone ?? 'UTC', field: `${path}.zone`, list: 'zones', wide: 20, edit(now) { window.zone = now; touch(); } }),
        text({ label: t('window.outsideShare'), value: window.outsideShare ?? 0, field: `${path}.outsideShare`, parse: fraction, edit(now) { window.outsideShare = now; touch(); } })),
      ...window.open.map((span, at) => spanLine(span, `${path}.open[${at}]`, touch, () => {
        window.open.splice(at, 1);
        touch();
        draw(() => add.isConnected ? add : box.querySelector(`[data-field="${path}.open"]`));
      })), h('div', { 'data-holder': `${path}.open` }, add));
    }
    focus?.()?.focus();
  }

  draw();
  return box;
}

const fraction = typed => /^\d*[.,]?\d+$/.test(typed.trim()) ? Number(typed.trim().replace(',', '.')) : typed;

export function windows({ value, field, edit }) {
  const all = structuredClone(value || {});
  return h('div', { class: 'windows' }, classes.map(name => classWindow(name, all, field, edit)));
}

// principals edits the table of principals. A row without an id is not part of the value yet; of two rows with one id the lower is, as a fault tells.
export function principals({ value, field, edit }) {
  const rows = Object.entries(value || {}).map(([id, one]) => ({ id, ...one }));
  const body = h('tbody'), box = h('div', { 'data-holder': field });
  const add = h('button', { type: 'button', 'data-field': field, onclick: () => {
    rows.push({ id: '' });
    draw();
    body.lastElementChild.querySelector('input').focus();
  } }, t('principal.add'));

  function touch() {
    const all = Object.create(null); // an id may be any word, __proto__ too
    for (const { id, ...one } of rows) {
      if (id === '') continue;
      const kept = {};
      if (one.class) kept.class = one.class;
      for (const name of ['bytesPerDay', 'bytesPerWeek']) {
        if (one[name] !== undefined && one[name] !== '') kept[name] = one[name];
      }
      all[id] = kept;
    }
    edit(all);
    twice();
  }

  // twice marks ids that stand in two rows.
  function twice() {
    const seen = new Map();
    for (const { id } of rows) seen.set(id, (seen.get(id) || 0) + 1);
    [...body.children].forEach((row, at) => row.querySelector('input').setCustomValidity(rows[at].id !== '' && seen.get(rows[at].id) > 1 ? t('principal.twice') : ''));
  }

  function line(row) {
    const path = () => `${field}.${row.id}`;
    const cell = (name, control) => h('td', {}, control);
    const set = name => now => {
      row[name] = now;
      touch();
    };
    const node = h('tr', {},
      h('td', {}, text({ label: t('principal.id'), hidden: true, wide: 20, value: row.id, field: path(), edit(now) {
        row.id = now.trim();
        for (const one of node.querySelectorAll('[data-field]')) one.dataset.field = path() + (one.dataset.part ? `.${one.dataset.part}` : '');
        touch();
      } })),
      cell('class', choice({ label: t('table.class'), hidden: true, value: row.class ?? '', options: ['', ...classes], field: `${path()}.class`, edit: set('class') })),
      cell('bytesPerDay', bytesText({ label: t('quota.perDay'), hidden: true, value: row.bytesPerDay, field: `${path()}.bytesPerDay`, edit: set('bytesPerDay') })),
      cell('bytesPerWeek', bytesText({ label: t('quota.perWeek'), hidden: true, value: row.bytesPerWeek, field: `${path()}.bytesPerWeek`, edit: set('bytesPerWeek') })),
      h('td', {}, h('button', { type: 'button', class: 'quiet', 'aria-label': t('principal.remove', { id: row.id || '–' }), onclick: () => {
        rows.splice(rows.indexOf(row), 1);
        touch();
        draw();
        add.focus();
      } }, t('remove'))));
    for (const part of ['class', 'bytesPerDay', 'bytesPerWeek']) {
      const control = node.querySelector(`[data-field$=".${part}"]`);
      if (control) control.dataset.part = part;
    }
    return node;
  }

  function draw() {
    const table = h('table', { class: 'principals' }, h('caption', { class: 'said' }, t('field.principals')), h('thead', {}, h('tr', {},
      ['principal.id', 'table.class', 'quota.perDay', 'quota.perWeek', 'principal.actions'].map(one => h('th', { scope: 'col' }, t(one))))), body);
    body.replaceChildren(...rows.map(line));
    box.replaceChildren(rows.length ? scroller(t('field.principals'), table) : h('p', { class: 'soft' }, t('principals.none')), add);
    twice();
  }

  draw();
  return box;
}
