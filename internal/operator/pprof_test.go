package operator

import "testing"

func TestProfilesAreServedOnTheLoopbackInterfaceOnly(t *testing.T) {
	for address, allowed := range map[string]bool{
		"":               true,
		"127.0.0.1:6060": true,
		"[::1]:6060":     true,
		":6060":          false,
		"0.0.0.0:6060":   false,
		"10.0.0.1:6060":  false,
		"localhost:6060": false, // a hosts file may say anything
		"127.0.0.1":      false,
	} {
		if err := checkPprofAddress(address); (err == nil) != allowed {
			t.Errorf("%q: %v", address, err)
		}
	}
}
