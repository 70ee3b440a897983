// Package console is the operator's page (rule V3): what waits and why, the slots, the rates over time, the live settings, the hours of the classes, and
// what an operator may do to a session.
//
// # Model
//
// The package holds files and no state. [Asset] hands them to the admin listener, which serves them below /console/ with its policy; the page then asks the
// API of the same listener, as any other client of it would:
//
//	view        address       asks, while it is seen                          changes
//	queue       #/queue       queue every 2 s, history every step (5 s)       -
//	sessions    #/sessions    one page of sessions every 2 s, and the one     move, pause, resume, kick, each after a question that says
//	                          session whose details are open                  what will happen
//	settings    #/settings    settings every 2 s                              settings, by compare-and-swap of the revision
//	windows     #/windows     settings and queue every 2 s                    -
//
// A failure doubles the pause up to 60 s, Retry-After is kept to, a tab that is not seen asks nothing and asks at once when it is seen again. What is shown
// stays, with the moment of which it is. An answer changes the document in place: nodes live as long as what they show, so that focus, selection and a
// reader's place in a table survive it.
//
// # Settings
//
// The form edits a copy of the overrides. The server is the only judge: what was typed is sent as it is where it is no number, and its faults are put beside
// their controls. After a 409 the document of now is read, and the three versions (before, mine, theirs) are compared by field; windows and
// principals by their entries. What one side alone changed is chosen already, what both did is the operator's to say.
//
// # Invariants
//
//	I1  Nothing is loaded from elsewhere, and nothing is inline: the files keep to a policy of default-src 'none' with scripts, styles, images and
//	    requests of their own origin. No text becomes markup.
//	I2  The token is in sessionStorage and in the Authorization header, nowhere else. Addresses hold the view, a state and a class, no ids.
//	I3  Every phrase is there in every language; numbers, spans and dates are written by Intl.
//	I4  A change is made by a person: nothing that runs by itself sends anything but GET.
//	I5  Clear ids are asked for when the operator says so, once for each session: each look is a line in the audit log.
//
// # Callers
//
// The composition root gives Asset to the admin server. The page itself needs no trust, because it holds no data.
//
// # Failure
//
// Without an answer the page says since when. A 401 asks for the token, once; closed, the question is not put again by itself. A 404 of a session
// says that it has ended. A browser without modules or scripts is told of arkvoryctl.
//
// # Decisions
//
// Hand-written modules: the files in the repository are the files that are served, there is no build step and no dependency to watch. Polling was
// chosen over a stream of events: the snapshot is cheap, a lost connection heals by itself, and the listener has few connections. Charts are drawn
// here: a library is larger than all of this together. The week of a window is drawn by what the wall clock shows, as the server decides.
// Rejected: several sessions at a time under one question (who kicks fifty does not read fifty names), saving each field by itself (fields depend on each
// other), resolving conflicts without asking, a service worker (an operator wants the truth or a fault, not a cache).
package console
