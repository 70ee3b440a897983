// Package storetest holds every implementation of config.RecordStore to one set of rules: revisions by compare and swap (S2), what newer versions saved kept byte for byte (S3),
// bounds, contexts, races. [Run] takes two stores of one record, so that what holds between two processes is shown with two pools or handles; [Count] and [Counted] do
// the same between real processes. It is for tests only, starts nothing that outlives a test, and waits for no clock.
package storetest
