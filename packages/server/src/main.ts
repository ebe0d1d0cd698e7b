#!/usr/bin/env node
import { parseArgs } from 'node:util'
import { ConfigError } from './config/fault.js'
import { readConfig } from './config/read-config.js'
import { didYouMean } from './config/spelling.js'
import { serve } from './serve.js'
import { UsageError } from './usage-error.js'
import { VERSION } from './version.js'

const HELP = `Sluicegate ${VERSION}: rate limit decisions as a service

  sluicegate serve --config FILE [--host HOST] [--port PORT]
      Serves the policies of FILE over HTTP. --host and --port win over the file.
  sluicegate check --config FILE
      Says what is wrong in FILE, with line and column, and serves nothing.
  sluicegate --help | --version
`

const OPTIONS = {
  config: { type: 'string', short: 'c' },
  host: { type: 'string' },
  port: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const
type Values = ReturnType<typeof parse>['values']

const COMMANDS: Readonly<Record<string, (values: Values) => void | Promise<void>>> = {
  serve: (values) => serve(readConfig(fileOf(values)), { host: values.host, port: portOf(values) }),
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

function portOf({ port }: Values): number | undefined {
  if (port === undefined) return undefined
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw new UsageError(`--port must be from 0 to 65535, not "${port}"`)
  return Number(port)
}

function fail(message: string, exitCode: number): void {
  console.error(message)
  process.exitCode = exitCode
}
