package ticket

// Outcome is what became of a ticket. All but Accepted mean that the download joins anew.
type Outcome uint8

// The outcomes, in no order of judging; see the package documentation for that.
const (
	// Accepted: genuine, of this session and in time.
	Accepted Outcome = iota
	// Malformed: not the one spelling of a ticket.
	Malformed
	// Oversized: longer than MaxBytes.
	Oversized
	// UnknownVersion: of another format than 2.
	UnknownVersion
	// BadMAC: forged, of another session, or signed with another key.
	BadMAC
	// Expired: issued more than Validity ago.
	Expired
	// Future: issued more than Ahead ahead of now.
	Future
	// ArrivalAfterIssue: genuine, but its arrival is later than its issue.
	ArrivalAfterIssue
	// Outcomes is the number of outcomes, not one of them.
	Outcomes = int(iota)
)

var outcomeNames = [Outcomes]string{
	Accepted: "accepted", Malformed: "malformed", Oversized: "oversized", UnknownVersion: "unknown_version",
	BadMAC: "bad_mac", Expired: "expired", Future: "future", ArrivalAfterIssue: "arrival_after_issue",
}

// String returns the outcome's name, a metric label of a closed set; a value that is no outcome is "invalid".
func (o Outcome) String() string {
	if int(o) < Outcomes {
		return outcomeNames[o]
	}
	return "invalid"
}
