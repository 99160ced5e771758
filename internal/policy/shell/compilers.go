package shell

import (
	"slices"
	"strings"
)

// compilers are the compilers of C and its like, without prefix and version.
const compilers = " gcc g++ cc c++ clang clang++ c99 c89 cpp gfortran gccgo ld lld "

// compiler reports whether a program is a compiler: gcc, gcc-13, x86_64-linux-gnu-gcc.
func compiler(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	name = strings.TrimSuffix(name, "-")
	return listed(compilers, name[strings.LastIndexByte(name, '-')+1:])
}

// compile looks for options by which a compiler or its linker runs or loads others.
func (r *reader) compile(name string, args []word) {
	for _, w := range args {
		if compilerLoads(w) {
			r.hide(name + " runs or reads what is not shown: " + w.show())
		}
	}
}

// compilerLoads reports whether an option makes a compiler run, load or read what
// the line does not show.
func compilerLoads(w word) bool {
	if w.text == "" && w.spreads || strings.HasPrefix(w.text, "@") {
		return true
	}
	if linker, ok := strings.CutPrefix(w.text, "-fuse-ld="); ok {
		return !w.known || !listed(" bfd gold lld mold ", linker)
	}
	if options, ok := strings.CutPrefix(w.text, "-Wl,"); ok {
		return !w.known || slices.ContainsFunc(strings.Split(options, ","), func(option string) bool { return compilerLoads(literal(option)) })
	}
	return !listed(" -Bstatic -Bdynamic ", w.text) &&
		slices.ContainsFunc(strings.Fields(compilerOptions), func(option string) bool { return strings.HasPrefix(w.text, option) })
}

// compilerOptions are the beginnings of options of compilers and linkers that make
// them run, load or read what the line does not show.
const compilerOptions = ` -B --prefix --ld-path --config -fplugin -fpass-plugin -iplugindir -specs --specs -wrapper -load -plug --plug -ccc- --gcc-toolchain -Xlinker --for-linker `
