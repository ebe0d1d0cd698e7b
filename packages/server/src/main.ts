#!/usr/bin/env node
import { Command, CommanderError, Option } from 'commander'
import { check } from './cli/check.js'
import { ENVIRONMENT } from './cli/environment.js'
import { serve } from './cli/serve.js'
import { overridesOf, type ServeTexts } from './cli/serve-options.js'
import { TAKE_EXIT, take } from './cli/take.js'
import { top } from './cli/top.js'
import { UsageError } from './cli/usage-error.js'
import type { Config } from './config/config.js'
import { ConfigError } from './config/fault.js'
import { withOverrides } from './config/overrides.js'
import { readConfig } from './config/read-config.js'
import { configObject, shownConfig } from './config/shown-config.js'
import { type ReplayFlags, runReplay } from './replay/run-replay.js'
import { VERSION } from './version.js'

const SIGNALS = `
SIGTERM answers on for the time of --drain, then finishes requests in flight and exits with 0. SIGINT (Ctrl-C) does not
drain. A second signal stops at once, with 1. SIGHUP reads the files again, as a change of them does. ADDR is HOST:PORT, [IPV6]:PORT, unix:/PATH or off.`

const REPLAY_EXAMPLES = `
  sluicegate replay access.log --config limits.yaml --html report.html
  sluicegate replay access.log*.gz --config today.yaml --config stricter.yaml
  zcat access.log.gz | sluicegate replay - --config limits.yaml --key '$http_x_api_key' --format '...'`

const program = new Command('sluicegate')
  .description(`Sluicegate ${VERSION}: rate limit decisions as a service`)
  .version(VERSION, '-v, --version')
  .helpOption('-h, --help')
  .showSuggestionAfterError(true)
  .exitOverride()
  .configureOutput({ outputError: () => undefined })
  .addHelpText(
    'after',
    `
  sluicegate serve --config FILE
  sluicegate check FILE
  sluicegate COMMAND --help

Exit codes: 0 good, 1 cannot be carried out, 2 wrong command line.`,
  )

const option = (flags: string, text = '', variable?: string): Option => {
  const made = new Option(flags, text)
  return variable === undefined ? made : made.env(variable)
}

program
  .command('serve')
  .description('serve the policies of a file, or of the files of a folder; options win over the environment, and that over the files')
  .addOption(option('-c, --config <path>', 'file or folder', ENVIRONMENT.config))
  .addOption(option('--http <addr>', 'HTTP, metrics and the page (default 127.0.0.1:8080)', ENVIRONMENT.http))
  .addOption(option('--grpc <addr>', 'gRPC for Envoy (default off)', ENVIRONMENT.grpc))
  .addOption(option('--resp <addr>', 'the protocol of Redis (default off)', ENVIRONMENT.resp))
  .addOption(option('--admin <addr>', 'HTTP with the verbs of administration (default off)', ENVIRONMENT.admin))
  .addOption(option('--host <host>').hideHelp())
  .addOption(option('--port <port>').hideHelp())
  .addOption(option('--redis <url>', 'keys in Redis or Valkey instead of memory', ENVIRONMENT.redis))
  .addOption(option('--tls-cert <file>', 'certificate, in PEM', ENVIRONMENT.tlsCert))
  .addOption(option('--tls-key <file>', 'its private key, in PEM', ENVIRONMENT.tlsKey))
  .addOption(option('--tls-client-ca <file>', 'authority whose certificates clients need', ENVIRONMENT.tlsClientCa))
  .addOption(option('--drain <time>', 'on SIGTERM answer for this long while /readyz says 503 (default 5s)', ENVIRONMENT.drain))
  .addOption(
    option('--max-connections <n>', 'connections at once, half of them of one address (default 10000)', ENVIRONMENT.maxConnections),
  )
  .addOption(option('--snapshot <file>', 'keep the keys in memory over restarts: written each minute and at the end', ENVIRONMENT.snapshot))
  .addOption(
    option(
      '--processes <n>',
      'processes that share the ports and one budget per policy, or auto: one per core (default 1)',
      ENVIRONMENT.processes,
    ),
  )
  .addOption(option('--log-level <level>', 'debug, info, warn, error or silent (default info)', ENVIRONMENT.logLevel))
  .addOption(option('--print-config', 'print the configuration in force, secrets masked, and serve nothing'))
  .addOption(option('--json', 'print addresses, or the configuration, as JSON'))
  .addHelpText('after', SIGNALS)
  .allowExcessArguments(false)
  .action(async (texts: ServeTexts & { config?: string; printConfig?: true; json?: true }) => {
    const path = pathOf(undefined, texts.config)
    const overrides = overridesOf(texts, process.env)
    const read = (): Config => withOverrides(readConfig(path), overrides)
    if (!texts.printConfig) return serve({ path, read }, { json: texts.json === true })
    const config = read()
    console.log(texts.json ? JSON.stringify(configObject(config)) : shownConfig(config).trimEnd())
  })

program
  .command('check')
  .description('print every fault of a file or folder, with line and column; exit code 1 if there is one')
  .argument('[path]', 'file or folder')
  .addOption(option('-c, --config <path>', 'the same', ENVIRONMENT.config))
  .addOption(option('--json', 'print faults as JSON'))
  .allowExcessArguments(false)
  .action((path: string | undefined, texts: { config?: string; json?: true }) => {
    process.exitCode = check(pathOf(path, texts.config), texts.json === true)
  })

const urlOption = (): Option => option('--url <url>', 'the service, also unix:/PATH', ENVIRONMENT.url).default('http://127.0.0.1:8080')

program
  .command('take')
  .description('take tokens from a running service')
  .argument('<policy>')
  .argument('<key>')
  .addOption(option('--cost <n>', 'tokens').default('1'))
  .addOption(option('--peek', 'only look'))
  .addOption(urlOption())
  .addOption(option('--json', 'print the decision as JSON'))
  .addHelpText(
    'after',
    `\nExit codes: ${Object.entries(TAKE_EXIT)
      .map(([outcome, code]) => `${code} ${outcome}`)
      .join(', ')}, 1 error. A token comes from ${ENVIRONMENT.token}.`,
  )
  .allowExcessArguments(false)
  .action(async (policy: string, key: string, { cost, url, peek, json }: { cost: string; url: string; peek?: true; json?: true }) => {
    process.exitCode = await take({ policy, key, cost, url, token: tokenOf(), peek: peek === true, json: json === true })
  })

program
  .command('top')
  .description('show the decisions of a running service, each second')
  .addOption(urlOption())
  .addOption(option('--samples <n>', 'end after this number').argParser(samplesOf))
  .addOption(option('--json', 'print each sample as JSON'))
  .addHelpText(
    'after',
    `\nCtrl-C ends it. The admin listener shows keys, the HTTP listener pseudonyms. A token comes from ${ENVIRONMENT.adminToken} or ${ENVIRONMENT.token}.`,
  )
  .allowExcessArguments(false)
  .action(async ({ url, samples, json }: { url: string; samples?: number; json?: true }) => {
    await top({ url, samples, token: tokenOf(), json: json === true }, process.stdout)
  })

program
  .command('replay')
  .description('what the policies of a file would have denied in access logs')
  .argument('<log...>', 'access logs, plain, gzip or zstd; - for standard input')
  .addOption(option('-c, --config <path>', 'file with policies; give it again to compare files').argParser(collected).makeOptionMandatory())
  .addOption(
    option(
      '--format <format>',
      "common, combined, json, or the format as nginx's log_format or Apache's LogFormat writes it (default: known from the log)",
    ),
  )
  .addOption(
    option(
      '--key <[policy=]template>',
      'what a policy limits, for example $remote_addr or per-user=$http_x_user (default $remote_addr)',
    ).argParser(collected),
  )
  .addOption(
    option(
      '--match <policy=request>',
      'which requests a policy counts, for example "logins=POST /login" or "api=/api/*" (default all)',
    ).argParser(collected),
  )
  .addOption(option('--html <file>', 'write a report with plots'))
  .addOption(option('--denials <file>', 'write each denial as a line of JSON'))
  .addOption(option('--json', 'print the result as JSON'))
  .addHelpText('after', REPLAY_EXAMPLES)
  .action((logs: string[], flags: ReplayFlags) => runReplay(logs, flags))

try {
  if (process.argv.length <= 2) throw new UsageError('say what to do: serve, check, take, top, replay or --help')
  await program.parseAsync()
} catch (error) {
  if (error instanceof ConfigError) fail(error.message, 1)
  else if (error instanceof UsageError) fail(`sluicegate: ${error.message}`, error.exitCode)
  else if (!(error instanceof CommanderError)) throw error
  else if (error.exitCode !== 0) fail(`sluicegate: ${error.message.replace(/^error: /, '').replaceAll('\n', ' ')}; see --help`, 2)
}

function pathOf(argument: string | undefined, config: string | undefined): string {
  const path = argument ?? config
  if (path === undefined) throw new UsageError('say which file or folder: --config PATH')
  return path
}

function tokenOf(): string | undefined {
  return process.env[ENVIRONMENT.adminToken] || process.env[ENVIRONMENT.token] || undefined
}

/** An option that may be given again. */
function collected(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text]
}

function samplesOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--samples must be an integer from 1, not "${text}"`)
  return Number(text)
}

function fail(message: string, exitCode: number): void {
  console.error(message)
  process.exitCode = exitCode
}
