package ticket

import (
	"context"
	"fmt"
	"time"
)

// A download waits, its process is killed, and another takes it back to its place.
func Example() {
	source, err := FromVariable("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	if err != nil {
		panic(err)
	}
	key, err := source.Key(context.Background())
	if err != nil {
		panic(err)
	}
	session := HashSession("user:ann", "store.example/images/5.iso", "id:7f3a")
	arrived := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

	first := NewSigner(key)
	header := first.Append(nil, session, arrived, arrived.Add(40*time.Second))

	second := NewSigner(key) // after the restart
	now := arrived.Add(2 * time.Minute)
	arrival, _, outcome := second.Verify(header, session, now)
	fmt.Println(outcome, arrival.Format(time.RFC3339))

	_, _, outcome = second.Verify(header, HashSession("user:bob", "store.example/images/5.iso", "id:7f3a"), now)
	fmt.Println("for another principal:", outcome)
	_, _, outcome = second.Verify(header, session, now.Add(time.Hour))
	fmt.Println("an hour later:", outcome)
	fmt.Println(source.Name(), key)
	// Output:
	// accepted 2026-11-30T18:00:00Z
	// for another principal: bad_mac
	// an hour later: expired
	// variable hidden
}
