/** Those of `all` that a command line names, or all where it names none; a name that is none of them ends the program with its usage. */
export function chosenNames<Name extends string>(
  what: string,
  wanted: readonly string[],
  all: readonly Name[],
  usage: string,
): readonly Name[] {
  const unknown = wanted.filter((name) => !all.includes(name as Name))
  if (unknown.length === 0) return wanted.length > 0 ? all.filter((name) => wanted.includes(name)) : all
  console.error(`no ${what} ${unknown.join(', ')}\n\n${usage}`)
  process.exit(2)
}
