// A shop whose sign-up sends a welcome mail, and which learns by webhooks what became of it.
package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"sync"

	"waypost"
)

const bodyBytesMax = 1 << 20

type user struct {
	ID          string `json:"id"`
	Name        string `json:"-"`
	Email       string `json:"email"`
	EmailStatus string `json:"emailStatus"`
}

type shop struct {
	mail   *waypost.Client
	secret string

	mu         sync.Mutex
	users      map[string]*user
	deliveries map[string]bool
}

func main() {
	client, err := waypost.New() // WAYPOST_URL and WAYPOST_API_KEY
	if err != nil {
		log.Fatal(err)
	}
	s := &shop{
		mail: client, secret: os.Getenv("WAYPOST_WEBHOOK_SECRET"), users: map[string]*user{}, deliveries: map[string]bool{},
	}
	http.HandleFunc("POST /sign-up", s.signUp)
	http.HandleFunc("POST /webhooks/waypost", s.webhook)
	http.HandleFunc("GET /users/{id}", s.show)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

func (s *shop) signUp(w http.ResponseWriter, r *http.Request) {
	var form struct{ Name, Email string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyBytesMax)).Decode(&form); err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	u := s.add(form.Name, form.Email)
	_, err := s.mail.Messages.Send(r.Context(), &waypost.SendMessageRequest{
		From:    "Shop <welcome@example.com>",
		To:      waypost.To(u.Email),
		Subject: "Welcome",
		Text:    "Hello " + u.Name + ", thank you for signing up.",
	}, waypost.WithIdempotencyKey("welcome-"+u.ID))
	var refused *waypost.Error
	switch {
	case errors.Is(err, waypost.ErrValidation) && errors.As(err, &refused):
		s.remove(u.ID)
		answer(w, http.StatusUnprocessableEntity, map[string]string{"error": refused.Message})
	case err != nil:
		s.remove(u.ID)
		log.Print(err)
		answer(w, http.StatusBadGateway, map[string]string{"error": "the mail cannot be sent now"})
	default:
		answer(w, http.StatusCreated, u)
	}
}

func (s *shop) webhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	event, err := waypost.VerifyWebhook(body, r.Header, s.secret)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s.isNew(r.Header.Get("webhook-id")) {
		switch event := event.(type) {
		case *waypost.DeliveredEvent:
			s.setStatus(event.Data.Recipient, "delivered")
		case *waypost.BouncedEvent:
			s.setStatus(event.Data.Recipient, "bounced")
		case *waypost.ComplainedEvent:
			s.setStatus(event.Data.Recipient, "complained")
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *shop) show(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, found := s.users[r.PathValue("id")]
	if !found {
		http.NotFound(w, r)
		return
	}
	answer(w, http.StatusOK, u)
}

func (s *shop) add(name, email string) user {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &user{ID: rand.Text(), Name: name, Email: email, EmailStatus: "sent"}
	s.users[u.ID] = u
	return *u
}

func (s *shop) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, id)
}

func (s *shop) setStatus(email, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.users {
		if u.Email == email {
			u.EmailStatus = status
		}
	}
}

// isNew says whether a delivery did not come before: Waypost repeats what it got no answer to.
func (s *shop) isNew(delivery string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.deliveries[delivery]
	s.deliveries[delivery] = true
	return !seen
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.Print(err)
	}
}
