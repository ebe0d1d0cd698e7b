import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bashCompletion, manPage, readHelp } from './help-texts.js'

const PROGRAM = readHelp(
  '',
  'Usage: sluicegate [options] [command]\n\nSluicegate\n\nCommands:\n  take [options] <key>  take\n\nExit codes: 0 good, 1 bad.\n',
)
const TAKE = readHelp(
  'take',
  `Usage: sluicegate take [options] <key>

take tokens,
or none

Arguments:
  key                who

Options:
  -c, --config <path>  file or
                       folder (default: "-")
  --a-very-long-option-name-of-this-command <n>
                       a number
  -h, --help           display help

.dots begin no macro
`,
)

test('a help text is taken apart, with texts that go over lines', () => {
  assert.equal(TAKE.description, 'take tokens, or none')
  assert.deepEqual(TAKE.args, [{ flags: 'key', text: 'who' }])
  assert.deepEqual(TAKE.options, [
    { flags: '-c, --config <path>', text: 'file or folder (default: "-")' },
    { flags: '--a-very-long-option-name-of-this-command <n>', text: 'a number' },
    { flags: '-h, --help', text: 'display help' },
  ])
  assert.equal(TAKE.notes, '.dots begin no macro')
})

test('the manual has each command and option, dashes that can be copied, and no line that becomes a macro', () => {
  const page = manPage([PROGRAM, TAKE], '1.2.3')
  assert.match(page, /^\.SS take \[options\] <key>\nTake tokens, or none\.$/m)
  assert.match(page, /^\.B \\-c, \\-\\-config <path>\nfile or folder \(default: "\\-"\)$/m)
  assert.match(page, /^\\&\.dots begin no macro$/m)
  assert.match(page, /^\.SH EXIT STATUS\n0 good, 1 bad\.$/m)
})

test('completion offers the options of a command, and files where an option takes one', () => {
  const script = bashCompletion([PROGRAM, TAKE])
  assert.match(script, /^ {2}take\) options='--config --a-very-long-option-name-of-this-command --help' ;;$/m)
  assert.match(script, /^ {2}-c \| --config\)$/m)
})
