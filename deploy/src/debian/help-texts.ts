import { execFileSync } from 'node:child_process'

/** An option or an argument as a help text describes it. */
export interface HelpEntry {
  /** Such as `-c, --config <path>`. */
  readonly flags: string
  readonly text: string
}

/** The help text of one command, taken apart. */
export interface HelpText {
  /** Of the program itself: an empty name. */
  readonly name: string
  readonly usage: string
  readonly description: string
  readonly args: readonly HelpEntry[]
  readonly options: readonly HelpEntry[]
  readonly commands: readonly HelpEntry[]
  /** What stands below the lists. */
  readonly notes: string
}

/** The help texts of a program and of its commands, as it prints them. */
export function helpTexts(program: string): HelpText[] {
  const all = readHelp('', printed(program))
  const names = all.commands.map(({ flags }) => flags.split(' ')[0] ?? '').filter((name) => name !== 'help')
  return [all, ...names.map((name) => readHelp(name, printed(program, name)))]
}

function printed(program: string, ...command: string[]): string {
  return execFileSync(program, [...command, '--help'], { encoding: 'utf8' })
}

/** Takes a help text apart: lists have a heading and are indented by two, each entry's text by more. */
export function readHelp(name: string, text: string): HelpText {
  const lists: Record<string, HelpEntry[]> = { Arguments: [], Options: [], Commands: [] }
  const paragraphs = text.trimEnd().split('\n\n')
  const before: string[] = []
  const after: string[] = []
  let hasLists = false
  for (const paragraph of paragraphs) {
    const [heading = '', ...lines] = paragraph.split('\n')
    const list = lists[heading.replace(/:$/, '')]
    if (list !== undefined) {
      hasLists = true
      list.push(...entriesOf(lines))
    } else (hasLists ? after : before).push(paragraph)
  }
  const [usage = '', ...description] = before
  return {
    name,
    usage: joined(usage.replace(/^Usage: /, '')),
    description: description.map(joined).join('\n\n'),
    args: lists.Arguments ?? [],
    options: lists.Options ?? [],
    commands: lists.Commands ?? [],
    notes: after.join('\n\n'),
  }
}

function entriesOf(lines: readonly string[]): HelpEntry[] {
  const entries: { flags: string; text: string }[] = []
  for (const line of lines) {
    const [, flags, text = ''] = /^ {2}(\S.*?)(?: {2,}(.*))?$/.exec(line) ?? []
    const last = entries.at(-1)
    if (flags !== undefined) entries.push({ flags, text })
    else if (last !== undefined) last.text = `${last.text} ${line.trim()}`.trim()
  }
  return entries
}

function joined(lines: string): string {
  return lines.replaceAll(/\s*\n\s*/g, ' ').trim()
}

/** Options whose values are files or folders. */
const OF_FILES = /<(?:path|file|log\.\.\.)>/

/** Completion of commands, options and files for bash, of the help texts. */
export function bashCompletion([, ...commands]: readonly HelpText[]): string {
  const names = commands.map(({ name }) => name).join(' ')
  const cases = commands.map(({ name, options }) => `  ${name}) options='${options.flatMap(({ flags }) => longOf(flags)).join(' ')}' ;;`)
  const files = commands.flatMap(({ options }) =>
    options.filter(({ flags }) => OF_FILES.test(flags)).flatMap(({ flags }) => namesOf(flags)),
  )
  return `# bash completion for sluicegate
_sluicegate() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} options
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '${names} --help --version' -- "$word")
    return
  fi
  case $before in
  ${[...new Set(files)].join(' | ')})
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
    ;;
  esac
  case \${COMP_WORDS[1]} in
${cases.join('\n')}
  *) return ;;
  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -o filenames -F _sluicegate sluicegate
`
}

function namesOf(flags: string): string[] {
  return flags.match(/(?<![\w-])--?[a-z][\w-]*/g) ?? []
}

function longOf(flags: string): string[] {
  return namesOf(flags).filter((name) => name.startsWith('--'))
}

/** The manual page `sluicegate(1)`, of its help texts, in the macros of man(7). */
export function manPage([program, ...commands]: readonly HelpText[], version: string): string {
  if (program === undefined) throw new Error('the program has no help text')
  return `${[
    `.TH SLUICEGATE 1 "" "sluicegate ${escaped(version)}" "User Commands"`,
    '.SH NAME',
    'sluicegate \\- rate limit decisions as a service',
    '.SH SYNOPSIS',
    ...commands.flatMap(({ usage }) => ['.B sluicegate', escaped(usage.replace(/^sluicegate /, '')), '.br']),
    '.SH DESCRIPTION',
    'Sluicegate answers whether a request is within its limit, over HTTP, gRPC and the protocol of Redis.',
    'Policies are in files of YAML; keys are in memory, or in Redis or Valkey.',
    '.SH COMMANDS',
    ...commands.flatMap(commandLines),
    '.SH EXIT STATUS',
    ...notesOf(program.notes.replace(/^.*Exit codes: /s, '')),
    '.SH FILES',
    '.TP',
    '.I /etc/sluicegate/',
    'Policies of the system service, in files that end in .yaml.',
    '.TP',
    '.I /etc/default/sluicegate',
    'Its environment.',
    '.TP',
    '.I /var/lib/sluicegate/',
    'Keys that are kept over a restart.',
    '.SH SEE ALSO',
    '.BR systemctl (1),',
    '.BR redis-server (1)',
  ].join('\n')}\n`
}

function commandLines({ name, usage, description, args, options, notes }: HelpText): string[] {
  return [
    `.SS ${escaped(usage.replace(/^sluicegate /, ''))}`,
    `${escaped(capital(description))}.`,
    ...[...args, ...options].flatMap(({ flags, text }) => ['.TP', `.B ${escaped(flags)}`, ...(text === '' ? [] : [escaped(text)])]),
    ...(notes === '' ? [] : ['.PP', ...notesOf(notes)]),
    ...(name === '' ? [] : ['.PP']),
  ].slice(0, -1)
}

/** Lines that are indented are commands to copy. */
function notesOf(text: string): string[] {
  return text.split('\n\n').flatMap((paragraph, index) => {
    const lines = paragraph.split('\n').map(escaped)
    const isCode = paragraph.startsWith('  ')
    return [...(index === 0 ? [] : ['.PP']), ...(isCode ? ['.nf', ...lines, '.fi'] : lines)]
  })
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** For groff: a dash that can be copied, no line that begins as a macro does. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1')
}
