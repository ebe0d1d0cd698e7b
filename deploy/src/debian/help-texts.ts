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
