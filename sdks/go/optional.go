package waypost

import "encoding/json"

// Optional is a field of a request that may be absent (its zero value), null ([Null]), or have a value ([Value]).
type Optional[T any] struct {
	value *T
	set   bool
}

// Value is an [Optional] with a value.
func Value[T any](value T) Optional[T] { return Optional[T]{&value, true} }

// Null is an [Optional] that clears the field.
func Null[T any]() Optional[T] { return Optional[T]{nil, true} }

// IsZero says that the field is absent.
func (o Optional[T]) IsZero() bool { return !o.set }

// MarshalJSON writes the value, or null.
func (o Optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.value) }

// Text is a string where a request takes a string or something else.
type Text string

// To makes the recipients of a message from addresses, such as "ada@example.org" or "Ada Lovelace <ada@example.org>". For
// recipients with variables of their own write Recipients{MessageRecipient{…}, …}.
func To(addresses ...string) Recipients {
	recipients := make(Recipients, len(addresses))
	for i, address := range addresses {
		recipients[i] = Text(address)
	}
	return recipients
}

// unknown gives the fields of an object that are not known.
func unknown(object []byte, known ...string) (fields map[string]json.RawMessage) {
	_ = json.Unmarshal(object, &fields) // it was just read
	for _, name := range known {
		delete(fields, name)
	}
	return fields
}
