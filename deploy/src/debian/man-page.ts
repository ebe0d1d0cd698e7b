import type { HelpText } from './help-texts.js'

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
