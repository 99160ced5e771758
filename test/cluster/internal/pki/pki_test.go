package pki

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestCertificatesServeTheirPurposeOnly(t *testing.T) {
	ca, err := NewAuthority("test-ca", noon)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAuthority("other-ca", noon)
	if err != nil {
		t.Fatal(err)
	}
	server := Subject{Name: "api", Hosts: []string{"127.0.0.1", "kubernetes.default"}}
	client := Subject{Name: "admin", Groups: []string{"system:masters"}}
	cases := map[string]struct {
		subject Subject
		roots   *Authority
		opts    x509.VerifyOptions
		wantErr bool
	}{
		"a server is trusted by name":    {subject: server, roots: ca, opts: serving("kubernetes.default")},
		"a server is trusted by address": {subject: server, roots: ca, opts: serving("127.0.0.1")},
		"a server is not any server":     {subject: server, roots: ca, opts: serving("example.com"), wantErr: true},
		"a client is trusted":            {subject: client, roots: ca, opts: calling(noon)},
		"a client is no server":          {subject: client, roots: ca, opts: serving(""), wantErr: true},
		"a server is no client":          {subject: server, roots: ca, opts: calling(noon), wantErr: true},
		"another authority's is refused": {subject: client, roots: other, opts: calling(noon), wantErr: true},
		"a slow clock is forgiven":       {subject: client, roots: ca, opts: calling(noon.Add(-30 * time.Minute))},
		"it ends one day":                {subject: client, roots: ca, opts: calling(noon.Add(validity + time.Hour)), wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cert := issue(t, ca, tc.subject)
			tc.opts.Roots = x509.NewCertPool()
			tc.opts.Roots.AppendCertsFromPEM(tc.roots.Cert)
			if _, err := cert.Verify(tc.opts); (err != nil) != tc.wantErr {
				t.Errorf("Verify() = %v, want an error: %v", err, tc.wantErr)
			}
		})
	}
}

func TestIssueNamesTheSubject(t *testing.T) {
	ca, err := NewAuthority("test-ca", noon)
	if err != nil {
		t.Fatal(err)
	}
	got := issue(t, ca, Subject{Name: "system:node:one", Groups: []string{"system:nodes"}}).Subject.String()
	if want := "CN=system:node:one,O=system:nodes"; got != want {
		t.Errorf("subject is %q, want %q", got, want)
	}
}

func serving(host string) x509.VerifyOptions {
	return x509.VerifyOptions{CurrentTime: noon, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}

func calling(now time.Time) x509.VerifyOptions {
	return x509.VerifyOptions{CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

// issue also proves that the key belongs to the certificate.
func issue(t *testing.T, ca *Authority, s Subject) *x509.Certificate {
	t.Helper()
	p, err := ca.Issue(s)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}
