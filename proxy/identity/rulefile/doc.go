// Package rulefile reads small YAML files of rules that an operator edits while the process runs.
//
// # Purpose
//
// The principals file and the clients file share three needs: every fault is listed with its line, nothing that is not understood
// is skipped in silence, and a bad edit never takes away rules that work. [Parse] turns text into a plain tree of [Node]s whose
// reading methods collect faults; [File] keeps the last good value of such a file.
//
// # Subset of YAML
//
// One document of mappings, sequences and scalars. Anchors, aliases, merge keys, tags and repeated keys are faults: they let a
// short file describe a large or surprising one, and no file of rules needs them. Bounds: [MaxBytes], [MaxDepth], [MaxFaults].
//
// # Re-reading
//
// [File.Poll] compares the file's stamp (device, inode, size, times of content and of inode) and reads only when it differs, and once
// more at the poll after a change, so that a second write within the clock resolution of the file system is not missed. A faulty
// file leaves the last good value in place and sets [File.Problem] until a good one is read. Writers should replace the file by
// rename: a half written file can be a correct shorter one. Kubernetes mounts are replaced so. Poll blocks for as long as the file system
// does, so it belongs on a goroutine that nothing else waits for; on a mount that hangs the last good value stays in force.
//
// # Decisions
//
// Decoding into structs with the YAML library's strict mode was rejected: it stops at the first fault. Watching through inotify
// was rejected: a poll needs no descriptor and works on every file system.
//
// Poll and Reload belong to one goroutine at a time (a mutex holds that); Load and Problem are free of locks and may be called
// from everywhere. The package logs nothing.
package rulefile
