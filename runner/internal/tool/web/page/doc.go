// Package page makes text of web pages: Markdown, for a model to read.
//
// It reads tags in one pass from front to end and builds no tree. A page is
// written by whoever wants something from its reader, and the rules by which
// browsers make a tree let 64 KB of tags become hundreds of megabytes of nodes.
// Here work grows with the length of the page, and the text has a limit.
//
// What a visitor would not see is left out: scripts, styles, hidden elements and
// characters. So is what surrounds the content of a page, as far as the page
// says where that is: navigation, footers, and everything outside main or
// article.
package page
