// Numbers, bytes, spans and moments in the reader's language, by Intl.
import { locale, t } from './i18n.js';

const made = new Map();

function of(kind, options) {
  const key = `${locale()} ${kind.name} ${JSON.stringify(options)}`;
  if (!made.has(key)) made.set(key, new kind(locale(), options));
  return made.get(key);
}

export const dash = '–';

const missing = n => n === null || n === undefined || Number.isNaN(n);

export const number = (n, digits = 0) => missing(n) ? dash : of(Intl.NumberFormat, { maximumFractionDigits: digits }).format(n);

export const percent = share => missing(share) ? dash : of(Intl.NumberFormat, { style: 'percent', maximumFractionDigits: 1 }).format(share);

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

// scale is the binary unit that a count of bytes is best said in, as its index.
export function scale(n) {
  let at = 0;
  for (let left = Math.abs(n); left >= 1024 && at < units.length - 1; left /= 1024) at++;
  return at;
}

// bytes is a count of bytes in a binary unit, with three digits.
export function bytes(n, at = missing(n) ? 0 : scale(n)) {
  if (missing(n)) return dash;
  const scaled = n / 1024 ** at;
  return `${number(scaled, at === 0 || scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2)}\u00a0${t('unit.' + units[at])}`;
}

export const rate = (n, at) => missing(n) ? dash : `${bytes(n, at)}${t('unit.perSecond')}`;

const unit = (n, name) => of(Intl.NumberFormat, { style: 'unit', unit: name, unitDisplay: 'short', maximumFractionDigits: 0 }).format(n).replaceAll(' ', '\u00a0');

// span is a time in seconds in its two largest units.
export function span(seconds) {
  if (missing(seconds)) return dash;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return unit(whole, 'second');
  const minutes = Math.round(whole / 60);
  if (whole < 600) return two(Math.floor(whole / 60), 'minute', whole % 60, 'second');
  if (minutes < 60) return unit(minutes, 'minute');
  if (minutes < 1440) return two(Math.floor(minutes / 60), 'hour', minutes % 60, 'minute');
  const hours = Math.round(minutes / 60);
  return two(Math.floor(hours / 24), 'day', hours % 24, 'hour');
}

const two = (a, large, b, small) => b ? `${unit(a, large)} ${unit(b, small)}` : unit(a, large);

const moment = at => at instanceof Date ? at : new Date(at);

// clock is the time of day.
export const clock = (at, zone) => missing(at) ? dash : of(Intl.DateTimeFormat, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone: zone }).format(moment(at));

// exact is the time of day with seconds.
export const exact = at => missing(at) ? dash : of(Intl.DateTimeFormat, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }).format(moment(at));

// when is the time of day, and the day where it is another one than today.
export function when(at, zone) {
  if (missing(at)) return dash;
  const day = { year: 'numeric', month: '2-digit', day: '2-digit', timeZone: zone };
  const same = of(Intl.DateTimeFormat, day).format(moment(at)) === of(Intl.DateTimeFormat, day).format(new Date());
  return same ? clock(at, zone) : of(Intl.DateTimeFormat, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone: zone }).format(moment(at));
}

// full is the whole moment with its zone, for titles and details.
export const full = at => missing(at) ? dash : of(Intl.DateTimeFormat, { dateStyle: 'medium', timeStyle: 'long', hourCycle: 'h23' }).format(moment(at));

export const dayOf = (at, zone) => of(Intl.DateTimeFormat, { weekday: 'short', day: 'numeric', month: 'short', timeZone: zone }).format(moment(at));

// weekday is a day of the week, 0 = Monday.
export const weekday = (index, width = 'short') => of(Intl.DateTimeFormat, { weekday: width, timeZone: 'UTC' }).format(new Date(Date.UTC(2024, 0, 1 + index)));

