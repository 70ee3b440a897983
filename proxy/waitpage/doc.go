// Package waitpage writes the page that a person sees whose download waits longer than a request may be held (rule V4): the place in the
// queue, about when the download starts, and a script that starts it by itself.
//
// # Model
//
// [Append] is a function of [Facts] alone: no clock, no state, no I/O. The page is one document of under 16 KiB without any outside asset, in
// English or Russian by Accept-Language. Its fixed text is put together once, at start; a page costs some appends and no allocation.
//
// With scripts the page asks the address it stands at, with the field [PollField], at the pace that each answer tells:
//
//	answer to the question                what the page does
//	200, JSON {"ready":true}              says that the download has started and navigates to the same address, once
//	503 or 429, JSON, retryAfterSeconds   shows queuePosition, startsAt and startsWindow; asks again after that many seconds, within 1..300,
//	                                      and up to a tenth more at random; an answer without place and start leaves those shown
//	401, 403, 404, 410, a redirect        reloads once, so that the browser shows what the server says; after that as a failure
//	2xx of another kind                   as a failure; the second one since a good answer navigates: the file is served without a queue
//	anything else, no answer for 60 s     shows "connection lost" and asks again after 2, 4, 8, ... 60 s
//
// One question is under way at a time. A page that the browser puts away drops its question and its timer, and asks at once when it
// is brought back. Coming online and coming to the front ask at once what is overdue. A queueTicket in an answer goes back with the
// next question, so that the place outlives a restart of the proxy as long as the page is open.
//
// Without scripts the page loads itself again every 5..60 seconds, and the load that finds a free slot is the download.
//
// # What the caller must do
//
// Send the page to a navigation with status 503, [ContentType], [ContentSecurityPolicy] and Cache-Control: no-store. Answer a GET with [PollField]
// at once, take no slot for it, keep the place of its session as for any contact, and never send it to the origin. An answer
// {"ready":true} promises that the next GET of that client gets a slot, so the slot must stay claimable for some seconds. Browsers run the
// timers of hidden pages once a minute: a place must survive that much lateness, and the page promises some minutes.
//
// # Invariants
//
//	I1 No byte of Name or Language reaches the document unescaped; controls and marks that reorder text are not shown as such.
//	I2 The script and the style in the document are those whose hashes ContentSecurityPolicy names: nothing in them depends on Facts.
//	I3 The document is shorter than 16 KiB, whatever Facts holds.
//	I4 The page says the same with and without scripts, but for the zone of its times.
//
// # Failure
//
// Append cannot fail. A browser without scripts, or one that refuses them, has the refresh; one whose script fails has the link, which asks for the
// file as the first navigation did.
//
// # For those who cannot see or point
//
// One heading, one main landmark, a named progress bar. A status region speaks on a change of the state, and on news of the place that are
// worth it: each step of the last ten, else a tenth of the way; a start that moved by more than a minute and a fifth of the wait. The refresh stands
// in noscript, so that nobody's reading is cut off by it while scripts run. Colours keep a contrast of 4.5 in both schemes; nothing
// moves for those who asked for that.
//
// # Decisions
//
// The phrases are written once, here, and handed to the script as JSON in an attribute: the script stays the same bytes in both
// languages, and one hash does. html/template was rejected: with two places for hostile text, both the content of an element, it costs
// reflection for each page and shows less than the appends do. The policy's hashes are a constant that a test compares with the page, not computed
// at start: the policy is then part of the source that is reviewed. Server-sent events and long polls were rejected: a thousand pages would be a
// thousand open requests. A frame or a link with the attribute download was rejected for the start: both lose the server's own answer when
// the slot is gone, a navigation shows this page again. A click on the link asks first and navigates on a yes, since a navigation while the
// script goes on asking could download twice.
package waitpage
