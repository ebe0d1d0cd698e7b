#!/usr/bin/env node
import { parseArgs } from 'node:util'
import { MAX_CONNECTIONS, MAX_DRAIN_MS } from './config/clients.js'
import { ConfigError } from './config/fault.js'
import { readConfig } from './config/read-config.js'
import { didYouMean } from './config/spelling.js'
import { timeSpanMs } from './config/time-span.js'
import { serve } from './serve.js'
import { UsageError } from './usage-error.js'
import { VERSION } from './version.js'

const HELP = `Sluicegate ${VERSION}: rate limit decisions as a service

  sluicegate serve --config FILE [options]
      Serves the policies of FILE over HTTP. Options win over the file:
        --host HOST            address to listen on (default 127.0.0.1)
        --port PORT            port to listen on, 0 for a free one (default 8080)
        --drain TIME           on SIGTERM answer for this long while /readyz says 503, for example
                               10s, 500ms or 0; a number alone is seconds (default 5s)
        --max-connections N    connections at once (default 10000), half of them from one address
      SIGTERM drains, then finishes requests in flight and exits with 0. SIGINT (Ctrl-C) does not drain.
      A second signal stops at once.
  sluicegate check --config FILE
      Prints every fault of FILE, with line and column, and serves nothing.
  sluicegate --help | --version
`

const OPTIONS = {
  config: { type: 'string', short: 'c' },
  host: { type: 'string' },
  port: { type: 'string' },
  drain: { type: 'string' },
  'max-connections': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const
type Values = ReturnType<typeof parse>['values']

const COMMANDS: Readonly<Record<string, (values: Values) => void | Promise<void>>> = {
  serve: (values) =>
    serve(readConfig(fileOf(values)), {
      host: values.host,
      port: integerOf(values, 'port', 0, 65_535),
      drainMs: drainOf(values),
      maxConnections: integerOf(values, 'max-connections', 1, MAX_CONNECTIONS),
    }),
  check(values) {
    const file = fileOf(values)
    const { policies } = readConfig(file)
    console.log(`${file}: good, ${policies.length} ${policies.length === 1 ? 'policy' : 'policies'}`)
  },
}

try {
  await run(process.argv.slice(2))
} catch (error) {
  if (error instanceof ConfigError) fail(error.message, 1)
  else if (error instanceof UsageError) fail(`sluicegate: ${error.message}`, error.exitCode)
  else throw error
}

async function run(args: readonly string[]): Promise<void> {
  const { values, positionals } = parse(args)
  if (values.version) return console.log(VERSION)
  const [command, ...rest] = positionals
  if (values.help || command === 'help') return console.log(HELP)
  if (command === undefined) throw new UsageError('say what to do: serve, check or --help')
  const perform = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined
  if (perform === undefined)
    throw new UsageError(`there is no command "${command}"${didYouMean(command, Object.keys(COMMANDS)) || '; see --help'}`)
  if (rest.length > 0) throw new UsageError(`"${rest[0]}" is one word too many; see --help`)
  await perform(values)
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true, strict: true })
  } catch (error) {
    const unknown = /Unknown option '--?([^']*)'/.exec((error as Error).message)?.[1]
    if (unknown === undefined) throw new UsageError((error as Error).message)
    throw new UsageError(`there is no option --${unknown}${didYouMean(unknown, Object.keys(OPTIONS)) || '; see --help'}`)
  }
}

function fileOf({ config }: Values): string {
  if (config === undefined) throw new UsageError('say which file: --config FILE')
  return config
}

function integerOf(values: Values, option: 'port' | 'max-connections', min: number, max: number): number | undefined {
  const text = values[option]
  if (text === undefined) return undefined
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(number >= min && number <= max)) throw new UsageError(`--${option} must be from ${min} to ${max}, not "${text}"`)
  return number
}

function drainOf({ drain }: Values): number | undefined {
  if (drain === undefined) return undefined
  const ms = timeSpanMs(/^[\d.]+$/.test(drain) ? `${drain}s` : drain)
  if (ms === undefined || ms > MAX_DRAIN_MS)
    throw new UsageError(`--drain must be a time of at most 1h, for example 10s, 500ms or 0, not "${drain}"`)
  return ms
}

function fail(message: string, exitCode: number): void {
  console.error(message)
  process.exitCode = exitCode
}
