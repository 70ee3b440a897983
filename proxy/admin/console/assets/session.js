// How a session is put into words, the same in the table and beside it.
import { bytes, number, percent } from './format.js';
import { has, t } from './i18n.js';

export const why = one => !one.why ? '' : has(`why.${one.why}`) ? t(`why.${one.why}`) : one.why;

export const sentOf = one => one.sentBytes === 0 ? '–' : one.sizeBytes > 0 ? `${bytes(one.sentBytes)} · ${percent(Math.min(1, one.sentBytes / one.sizeBytes))}` : bytes(one.sentBytes);

// placeOf is what stands in the first cell: the place of a session that waits, else its state.
export const placeOf = one => one.state === 'waiting' ? one.position === null ? t('state.waiting') : number(one.position) : t(`state.${one.state}`);

export const classOf = one => one.standsIn && one.standsIn !== one.class ? t('sessions.standsIn', { class: t(`class.${one.class}`), as: t(`class.${one.standsIn}`) }) : t(`class.${one.class}`);
