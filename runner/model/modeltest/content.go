package modeltest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A File is an image or a document in a request.
type File struct {
	MediaType string
	Data      []byte
}

// UnmarshalJSON reads a message whose content is a text, a list of texts, images and documents,
// or null.
func (m *Message) UnmarshalJSON(data []byte) error {
	type plain Message
	var raw struct {
		plain
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*m = Message(raw.plain)
	if len(raw.Content) == 0 || raw.Content[0] != '[' {
		return json.Unmarshal(orNull(raw.Content), &m.Content)
	}
	var parts []chatPart
	if err := json.Unmarshal(raw.Content, &parts); err != nil {
		return err
	}
	text := ""
	for _, p := range parts {
		switch {
		case p.Type == "text" && p.Text != "":
			text += p.Text
		case p.Type == "image_url":
			if err := m.addURL(p.ImageURL.URL, imageTypes); err != nil {
				return err
			}
		case p.Type == "file" && p.File.Name != "":
			if err := m.addURL(p.File.Data, documentTypes); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a part of type %q with %d bytes of text", p.Type, len(p.Text))
		}
	}
	m.Content = &text
	return nil
}

// A chatPart is a part of a content of chat completions.
type chatPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

// The media types that providers take.
var (
	imageTypes    = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	documentTypes = []string{"application/pdf"}
)

// addURL adds a file that is a data URL.
func (m *Message) addURL(url string, types []string) error {
	mediaType, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(url, "data:") {
		return fmt.Errorf("the URL %.40q is not a data URL", url)
	}
	return m.addFile(mediaType, data, types)
}

// addFile adds a file in base64.
func (m *Message) addFile(mediaType, data string, types []string) error {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(raw) == 0 || !slices.Contains(types, mediaType) {
		return fmt.Errorf("a file of type %q with %d bytes is not one of %v (%w)", mediaType, len(raw), types, err)
	}
	if found := http.DetectContentType(bytes.TrimSpace(raw)); found != mediaType {
		return fmt.Errorf("the file was specified using the media type %s, but appears to be %s", mediaType, found)
	}
	m.Files = append(m.Files, File{MediaType: mediaType, Data: raw})
	return nil
}

func orNull(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}
