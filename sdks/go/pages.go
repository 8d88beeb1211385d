package waypost

import (
	"context"
	"errors"
	"iter"
)

// List is a list of the service: [List.Page] gives its first page, [List.All] all items. Nothing is sent before.
type List[T any] struct {
	caller  *caller
	call    call
	options []Option
}

// Page is a page of a list.
type Page[T any] struct {
	// Data are the items of this page.
	Data []T `json:"data"`
	// Pagination says where this page is; nil for a short list, which has one page.
	Pagination *Pagination `json:"pagination"`

	list *List[T]
}

// Page gives the first page, or the one that the parameters name.
func (l *List[T]) Page(ctx context.Context) (*Page[T], error) {
	page, err := read[Page[T]](ctx, l.caller, l.call, l.options)
	if err == nil {
		page.list = l
	}
	return page, err
}

// Next gives the page after this one; nil at the end.
func (p *Page[T]) Next(ctx context.Context) (*Page[T], error) {
	if p.Pagination == nil || p.Pagination.NextCursor == "" {
		return nil, nil
	}
	after := *p.list
	after.call.cursor = p.Pagination.NextCursor
	next, err := after.Page(ctx)
	if err == nil && next.Pagination != nil && next.Pagination.NextCursor == after.call.cursor {
		return nil, errors.New("waypost: the service gave the same page twice; does a proxy store its answers?")
	}
	return next, err
}

// All gives all items, page by page. Items that are added to the list meanwhile move nothing. An error is the last thing
// that it gives.
func (l *List[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		page, err := l.Page(ctx)
		for ; page != nil && err == nil; page, err = page.Next(ctx) {
			for _, item := range page.Data {
				if !yield(item, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(*new(T), err)
		}
	}
}
