// Package queuetest is the conformance suite of download queues: what every implementation must do, whatever it keeps
// its state in. An implementation's test calls Run with a Factory; the factory decides how time passes (a hand-moved clock
// in a synctest bubble, the database's time) and what "settled" means for it, the suite only uses the means in Subject and
// never sleeps. Case names cite the rules they prove.
package queuetest
