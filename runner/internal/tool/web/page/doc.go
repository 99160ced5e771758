// Package page makes text of web pages: Markdown, for a model to read.
//
// It reads tags in one pass from front to end and builds no tree, because pages may be hostile. With the rules by which
// browsers build a tree, x/net/html v0.57.0 needs 6 s and 649 MiB for 128 KB of tags with at most 512 of them open.
// html-to-markdown v2.5.2 needs more than 6 GB for a table of 128 KB. Both were measured with the pages of
// TestPagesAgainstTheirReader. Here the work is proportional to the length of the page, and the text has a limit.
//
// Invisible parts are left out: scripts, styles, hidden elements and characters. So is everything around the content of
// a page, if the page marks its content: navigation, footers, and everything outside main or article.
package page
