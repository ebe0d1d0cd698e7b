import assert from 'node:assert/strict'
import type { Clock } from 'sluicegate'
import type { SessionContext } from 'sluicegate-server/dist/protocols/resp/command.js'
import { ALL_COMMANDS } from 'sluicegate-server/dist/protocols/resp/command-table.js'
import { Session } from 'sluicegate-server/dist/protocols/resp/session.js'
import type { Random } from 'sluicegate-testkit'
import { commandBytes, repliesIn } from '../../servers/resp.js'
import { sessionContext } from '../resp-session.js'
import { damaged } from './damaged.js'
import { fuzzRounds } from './fuzz-input.js'

/** The memory that unanswered input may take: a command of 64 KiB, twice, and a piece. */
const MAX_HELD_BYTES = 262_144

/**
 * Feeds `inputs` random inputs, which have the structure of RESP with faults in it, to three sessions each: whole, byte by byte and in
 * random pieces. All must give the same replies, well formed, and hold bounded memory.
 *
 * @throws with the seed and the number of the input that failed.
 */
export function fuzzResp(seed: number, inputs: number): void {
  for (const { random, number, subjects } of fuzzRounds(seed, inputs, contextOf)) {
    const input = randomInput(random)
    const pieces = [() => input.length, () => 1, () => random.magnitude(1, 64)]
    try {
      const [whole, ...others] = subjects.map((context, i) => replies(context, input, pieces[i] as () => number))
      for (const other of others) assert.ok(whole?.equals(other), 'other replies in other pieces')
      repliesIn(whole as Buffer)
    } catch (error) {
      throw new Error(`seed ${seed}, input ${number}: ${JSON.stringify(input.toString('latin1'))}`, { cause: error })
    }
  }
}

/** How many full keys a table still counts depends on its random secret, and so would the replies of `INFO` and `DBSIZE`. */
function contextOf(clock: Clock): SessionContext {
  const context = sessionContext({ clock })
  const stats = context.engine.callRates.stats()
  context.engine.callRates.stats = () => stats
  return context
}

/** All replies to an input that arrives in pieces. */
function replies(context: SessionContext, input: Buffer, pieceBytes: () => number): Buffer {
  const session = new Session(1, context, () => undefined)
  const written: Buffer[] = []
  for (let at = 0; at < input.length; ) {
    const end = Math.min(at + pieceBytes(), input.length)
    session.push(Buffer.from(input.subarray(at, end)))
    at = end
    for (;;) {
      const waiting = session.run()
      if (session.readyBytes > 0) written.push(session.takeReplies())
      assert.ok(session.heldBytes <= Math.max(MAX_HELD_BYTES, input.length), `${session.heldBytes} bytes are held`)
      if (waiting === 'end') return Buffer.concat(written)
      if (waiting === 'input') break
      assert.notEqual(waiting, 'store')
    }
  }
  return Buffer.concat(written)
}

/** Commands, some of them with faults. */
export function randomInput(random: Random): Buffer {
  const parts = Array.from({ length: random.integer(1, 4) }, () => randomPart(random))
  const input = Buffer.concat(parts)
  return random.chance(0.3) ? damaged(random, input) : input
}

function randomPart(random: Random): Buffer {
  const args = randomArguments(random)
  if (random.chance(0.6)) return commandBytes(...args)
  if (random.chance(0.5))
    return Buffer.from(
      `${args.map((arg) => inlineText(random, arg)).join(random.pick([' ', '  ', '\t']))}${random.pick(['\r\n', '\n'])}`,
      'latin1',
    )
  const numbers = [
    '0',
    '-1',
    '1',
    '2',
    '10',
    '1024',
    '1025',
    '-',
    '',
    '+1',
    '01',
    ' 1',
    '16384',
    '16385',
    '4294967296',
    '99999999999999999999999',
  ]
  const type = random.pick(['*', '$', ':', '+', '-', '%', '_', '!', '\0'])
  const lineEnd = random.pick(['\r\n', '\r\n', '\n', '\r', ''])
  return Buffer.concat([
    Buffer.from(`${type}${random.pick(numbers)}${lineEnd}`),
    random.chance(0.5) ? commandBytes(...args) : Buffer.alloc(0),
  ])
}

function randomArguments(random: Random): Buffer[] {
  const name = Buffer.from(randomCase(random, random.pick(ALL_COMMANDS).name))
  const known: readonly string[][] = [
    [
      'CL.THROTTLE',
      randomKey(random),
      String(random.magnitude(1, 1e9)),
      String(random.magnitude(1, 1e9)),
      String(random.magnitude(1, 1e6)),
    ],
    ['CL.THROTTLE', randomKey(random), '15', '30', '60', String(random.integer(-1, 20))],
    ['SG.TAKE', 'api', randomKey(random), String(random.integer(0, 12))],
    ['SG.PEEK', 'api', randomKey(random)],
    ['HELLO', random.pick(['2', '3', '4'])],
    ['COMMAND', 'DOCS'],
    ['CLIENT', random.pick(['ID', 'GETNAME', 'SETNAME', 'INFO']), 'x'],
  ]
  if (random.chance(0.5)) return random.pick(known).map((arg) => Buffer.from(arg, 'latin1'))
  return [name, ...Array.from({ length: random.magnitude(1, 8) - 1 }, () => randomBytes(random))]
}

function randomKey(random: Random): string {
  return random.chance(0.8) ? random.pick(['a', 'b', 'c']) : randomBytes(random).toString('latin1')
}

function randomBytes(random: Random): Buffer {
  if (random.chance(0.4))
    return Buffer.from(
      random.pick(['1', '-1', '0', 'api', 'GET', 'save', '9223372036854775807', '9223372036854775808', '\r\n', '"', '\\x']),
    )
  return Buffer.from(Array.from({ length: random.magnitude(1, random.chance(0.02) ? 3_000 : 20) - 1 }, () => random.integer(0, 255)))
}

function randomCase(random: Random, name: string): string {
  return Array.from(name, (letter) => (random.chance(0.5) ? letter.toUpperCase() : letter)).join('')
}

function inlineText(random: Random, arg: Buffer): string {
  const text = arg.toString('latin1')
  if (random.chance(0.7)) return text
  return random.chance(0.5)
    ? `"${text.replace(/[^ -!#-[\]-~]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)}"`
    : `'${text}'`
}
