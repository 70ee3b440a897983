// Package window is the calendar of class windows: at which hours of which days a class of downloads may start, and how much of the slots and the
// band it gets outside of them. It has no clock and no state: a Schedule is a pure function of a moment.
//
// # Model
//
// A Spec has a zone and 1..16 spans. A span [from, to) belongs to the days it begins on. The week is a table of 7 x 1440 local minutes, and
//
//	open(t) = table[weekday(t), minute(t)]        both as a wall clock in the zone shows them at t
//	share(t) = 1000 when open(t), else outsideShare x 1000            per mille, whole
//
// Spans are joined: what any of them holds is open. to <= from ends on the next day, "24:00" is the end of the day, and from == to is a whole day, the 24
// hours of the wall clock from that time on.
//
// # Changes of the clock
//
// The wall clock's reading decides, and nothing else. What an operator wrote as 22:00-06:00 begins when the clock on the wall shows 22:00 and ends when it
// shows 06:00, and has 7, 8 or 9 hours. It follows that
//
//   - a from that is skipped (02:30, when 03:00 follows 01:59) opens at the jump, and a to that is skipped closes at it;
//   - a span that is skipped whole does not open that day;
//   - hours that come twice are inside both times: 02:15-02:45 opens twice that night, and 01:00-02:30 opens again for the second 02:00-02:30;
//   - a day that a zone left out has no hours of its own; a night that would have begun on it still ends on the next one.
//
// Edges finds the moments at which open changes, within a stretch of constant offset by the table and at each change of the offset by comparing both sides,
// so its cost is that of the edges it returns and not of the minutes between them.
//
// # Callers and failure
//
// The live settings compile what an operator wrote, queue/memory turns edges into a plan of the core, arkvoryctl simulates one. Compile returns all faults at
// once with their fields and changes nothing. The zone database is the system's, else the one in the binary (time/tzdata is imported here, so that no
// program forgets it): an image without one knows the same zones. A Schedule keeps the rules of the database it was compiled with.
//
// # Decided, and rejected
//
//   - Spans as durations from their beginning (22:00 and eight hours): in the night of a change they would end at 05:00 or 07:00 on everybody's clock.
//   - The first or the second of a doubled hour alone: each surprises half of the operators, and a window that is open longer harms nobody.
//   - Cron expressions: they say when something begins and not how long it lasts.
package window
