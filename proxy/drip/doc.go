// Package drip keeps plain downloads alive that wait longer than a silent hold may last (rule X2): after the response head it feeds each client a few real
// bytes of its object every four seconds, until its turn comes and the exchange sends the rest.
//
// # Model
//
// A [Drip] is one waiting response: an object of known length under a strong validator, the bytes First..Last of it that the response carries, and the offset of
// the next byte. The [Dripper] visits every drip once a [Period], from one tick of 250 ms that somebody else's goroutine calls: no goroutine and no timer belong to a drip. A
// visit gives
//
//	bytes = integral of min(BytesPerSecond, Budget / drips) since the last visit, at least 1, at most an eighth of what is left
//
// and carries over what it could not give, up to two periods' worth. The integral is kept once for all, tick by tick, so that neither a budget that changes nor drips that
// come and go let the sum exceed it. When ticks were lost, all that have come due meanwhile are visited. So all drips together stay within the budget (1 % of the band) while there are at most Budget x Period of them, which [Dripper.Join] sees to. The last byte is never
// dripped: the end of a response is for the exchange to send.
//
// Bytes are granted by the direction's governor like all others, asked for without waiting: a drip whose turn there has not come is looked at again on the next tick.
//
// # Where the bytes come from
//
// The store holds pieces of [PieceBytes], aligned, each fetched once for all drips of the same object and validator. A piece that a drip stands in stays;
// the others go, least recently used first, when StoreBytes are reached. Half of a store of some size is kept for objects of which several drips are fed, so that many objects
// of one client each leave a crowd its pieces to share. When there is no room, a drip fetches for itself alone what two visits need, at most 2 KiB, and gets no more than
// 256 bytes a second: the origin is asked by it every eight seconds. A drip that has
// used up its piece asks for the next at once, a period before it needs it: an origin may take 4 s to answer and the client still hears every 5 s. So
// a thousand clients of one object cost the origin a request every 16 KiB, and memory never grows beyond StoreBytes and 2 KiB a client. Who shares a piece has shown
// before that the origin gives him this object under this validator: the exchange asks it with the client's own credentials first.
//
// Pieces are fetched by at most Fetchers goroutines, which end when there is nothing to fetch. A fetch says how it failed: [ErrChanged], the object is not
// that of the validator any more, and [ErrRefused], the origin does not give it to this client any more, cut the drip whose fetch it was; all else is tried
// again on later visits.
//
// # Invariants
//
//	I1 a drip is in the wheel exactly from Begin to Stop or its cut; Joined counts those between Join and Leave
//	I2 nothing is written to a sink after Stop has returned, and nothing before Begin
//	I3 refs of a piece = drips that stand in it; bytes of the store = sum of its pieces <= StoreBytes
//	I4 bytes written are those of [First, Last) in order, each once
//
// # Failure
//
// An origin that does not answer: the client gets nothing and bears that as any stall; when the fetch works again it goes on. While it is known that no origin can be
// reached (Shut), a drip gets a sixteenth of what its piece still holds in a visit, at least a byte: some hundred bytes last for minutes. When one is back the pauses end. A full socket takes nothing
// and costs nothing. A sink that fails is cut; whoever owns the connection sees its end. A panic of a fetch is contained and counts as a failure;
// one of a sink, source or observer in a visit cuts its drip, because what its client has got is not known any more. A failed fetch is tried again after 4, 8, 16 and then
// every 30 s, counted from the failure. When the budget falls below a byte a visit for those that joined before, they still get that byte.
//
// # Decisions
//
// Leaving the origin's response open and reading it slowly was rejected: it costs a connection of the origin for each client that waits, and nginx cuts it after 60 s
// without progress. Dripping bytes of the head (interim responses, fields in pieces) was rejected: half of the clients measured do not bear the first, proxies
// on the way hold back the second. Padding that is not the object's was never an option.
package drip
