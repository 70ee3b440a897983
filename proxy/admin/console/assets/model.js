// The settings as data: which fields there are, how they are written down, what two versions of them differ in. Nothing here touches the document.
import { bytes, number, percent, weekday } from './format.js';
import { has, t } from './i18n.js';

export const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

// sections are the fields in the order of the form. The kinds: choice, whole, bytes, flag, and those with an editor of their own.
export const sections = [
  ['order', [
    { name: 'mode', kind: 'choice', options: ['normal', 'queue-all', 'reject-new', 'pass-through', 'dry-run'] },
    { name: 'strategy', kind: 'choice', options: ['ordered', 'smallest-first', 'fair-sojourn', 'shared'] },
    { name: 'preempt', kind: 'flag' },
  ]],
  ['slots', [
    { name: 'sessions', kind: 'whole' }, { name: 'sessionsElastic', kind: 'whole' }, { name: 'reserve', kind: 'whole' },
    { name: 'perPrincipal', kind: 'whole' }, { name: 'rangesPerSession', kind: 'whole' },
  ]],
  ['classes', [{ name: 'weights', kind: 'weights' }, { name: 'agingMinutes', kind: 'whole' }]],
  ['sessions', [{ name: 'sessionMinBytes', kind: 'bytes' }, { name: 'idleSeconds', kind: 'whole' }]],
  ['windows', [{ name: 'windows', kind: 'windows' }]],
  ['principals', [{ name: 'principals', kind: 'principals' }]],
  ['quotas', [{ name: 'quotas', kind: 'quotas' }]],
];

const kinds = new Map(sections.flatMap(([, fields]) => fields.map(one => [one.name, one])));

// nested are the fields whose entries are chosen one by one when two operators have changed them.
const nested = new Set(['windows', 'principals']);

export const clone = value => structuredClone(value);

// same compares two JSON values; the order of the names does not matter.
export function same(a, b) {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false;
  const left = Object.keys(a), right = Object.keys(b);
  return left.length === right.length && left.every(name => Object.hasOwn(b, name) && same(a[name], b[name]));
}

// whole reads a whole number; what is none stays as it was typed, for the server to judge.
export function whole(text) {
  const plain = text.trim().replace(/[\u00a0\u202f ]/g, '');
  return /^-?\d{1,15}$/.test(plain) ? Number(plain) : text;
}

const factors = { k: 1, m: 2, g: 3, t: 4, p: 5, к: 1, м: 2, г: 3, т: 4, п: 5 };

// size reads a count of bytes, plain or with a binary unit (16 MiB, 16M, 16 МиБ); what is none stays as it was typed.
export function size(text) {
  const match = /^(\d{1,15})(?:[.,](\d{1,3}))?\s*([kmgtpкмгтп]?)(?:i?b|и?б)?$/i.exec(text.trim());
  if (!match) return text;
  const [, integer, fraction, unit] = match, factor = unit ? 1024 ** factors[unit.toLowerCase()] : 1;
  const total = Number(`${integer}.${fraction || 0}`) * factor;
  return Number.isSafeInteger(Math.round(total)) && (fraction === undefined || unit) ? Math.round(total) : text;
}

// changed are the names of the fields in which two versions of the overrides differ.
export const changed = (a, b) => [...new Set([...Object.keys(a), ...Object.keys(b)])].filter(name => !same(own(a, name), own(b, name)));

// own is an entry of an object, and nothing that all objects have: a principal may be called __proto__ or constructor.
const own = (object, key) => object && Object.hasOwn(object, key) ? object[key] : undefined;

// differing lists what mine and theirs differ in: {path, base, mine, theirs}, undefined for the environment's value.
export function differing(base, mine, theirs) {
  const found = [];
  for (const name of changed(mine, theirs)) {
    if (nested.has(name) && mine[name] && theirs[name]) {
      for (const key of changed(mine[name], theirs[name])) found.push({ path: [name, key], base: own(base[name], key), mine: own(mine[name], key), theirs: own(theirs[name], key) });
    } else {
      found.push({ path: [name], base: base[name], mine: mine[name], theirs: theirs[name] });
    }
  }
  return found;
}

// merged is theirs with those of mine that were chosen.
export function merged(theirs, differences, mineChosen) {
  const result = clone(theirs);
  differences.forEach(({ path: [name, key], mine }, at) => {
    if (!mineChosen[at]) return;
    const holder = key === undefined ? result : result[name] ??= {};
    const field = key === undefined ? name : key;
    if (mine === undefined) delete holder[field];
    else Object.defineProperty(holder, field, { value: clone(mine), configurable: true, enumerable: true, writable: true });
  });
  return result;
}

const word = (kind, code) => has(`${kind}.${code}`) ? t(`${kind}.${code}`) : String(code);

const limit = n => n > 0 ? bytes(n) : t('quota.none');

function spanWords({ days: on, from, to }) {
  const named = !on || on.length === 7 ? t('days.all') : on.map(day => weekday(days.indexOf(day))).join(' ');
  return `${named} ${from}–${to}`;
}

// hours are one class's windows in words.
export function hours(window) {
  if (!window) return t('window.always');
  const outside = window.outsideShare > 0 ? t('window.share', { share: percent(window.outsideShare) }) : t('window.waits');
  return `${(window.open || []).map(spanWords).join('; ') || t('window.closed')} (${window.zone || 'UTC'}; ${outside})`;
}

function one(entry) {
  return [entry.class ? word('class', entry.class) : '', entry.bytesPerDay > 0 ? t('quota.day', { n: bytes(entry.bytesPerDay) }) : '', entry.bytesPerWeek > 0 ? t('quota.week', { n: bytes(entry.bytesPerWeek) }) : '']
    .filter(Boolean).join(', ') || t('principal.known');
}

// describe puts a field's value into a short text. A value that has the wrong type is shown as it is.
export function describe([name, key], value) {
  if (value === undefined) return t(key === undefined ? 'value.environment' : 'value.absent');
  if (key !== undefined) return name === 'windows' ? hours(value) : one(value);
  const kind = kinds.get(name)?.kind;
  if (kind === 'choice') return word(name, value);
  if (kind === 'flag') return t(value ? 'value.on' : 'value.off');
  if (kind === 'bytes' && typeof value === 'number') return bytes(value);
  if (kind === 'weights') return ['interactive', 'release', 'bulk', 'background'].map(each => value[each]).join(' / ');
  if (kind === 'windows') return Object.entries(value).map(([each, window]) => `${word('class', each)}: ${hours(window)}`).join(' · ') || t('windows.none');
  if (kind === 'principals') return Object.keys(value).length ? t('principals.count', { n: number(Object.keys(value).length) }) : t('principals.none');
  if (kind === 'quotas') return [t('quota.day', { n: limit(value.bytesPerDay) }), t('quota.week', { n: limit(value.bytesPerWeek) }), value.zone].filter(Boolean).join(', ');
  return typeof value === 'number' ? number(value) : typeof value === 'string' ? value : JSON.stringify(value);
}

// titleOf names a field or an entry of one.
export function titleOf([name, key]) {
  const field = word('field', name);
  if (key === undefined) return field;
  return `${field}: ${name === 'windows' ? word('class', key) : key}`;
}
