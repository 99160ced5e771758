// Package toolset is the controller of Toolsets: it says whether one is well
// formed, as far as its schema cannot. It calls no server and reads no Secret.
package toolset
