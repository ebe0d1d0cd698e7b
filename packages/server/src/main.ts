#!/usr/bin/env node
import './cli/serve-options.js'
import { fileURLToPath } from 'node:url'
import { Command, CommanderError, Option } from 'commander'
import type { GateFlags } from 'sluicegate-commands/gate/gate-flags.js'
import type { LoadFlags } from 'sluicegate-commands/load/load-command.js'
import type { ReplayFlags } from 'sluicegate-commands/replay/run-replay.js'
import { ANSWER_MS } from 'sluicegate-commands/service/service-client.js'
import { TAKE_EXIT, take } from 'sluicegate-commands/service/take.js'
import { endWithOutput, printableLines, UsageError } from 'sluicegate-commands/terminal/usage-error.js'
import type { Config } from 'sluicegate-config/config.js'
import { ConfigError } from 'sluicegate-config/fault.js'
import type { ConfigFile, Known } from 'sluicegate-config/read-config.js'
import { timeSpanMs } from 'sluicegate-config/time-span.js'
import type { ServeTexts } from './cli/serve-options.js'
import { ENVIRONMENT } from './cli/serve-options.js'
import { isOutOfFiles, OUT_OF_FILES } from './open-files.js'
import { VERSION } from './version.js'

const MOST_TIMEOUT_MS = 3_600_000

// Each command loads what it needs: the server and its protocols take longer to load than most commands take.

const SIGNALS = `
SIGTERM answers on for the time of --drain, then finishes requests in flight and exits with 0. SIGINT (Ctrl-C) does not
drain. A second signal stops at once, with 1. SIGHUP reads the files again, as a change of them does. ADDR is HOST:PORT, [IPV6]:PORT, unix:/PATH or off.`

const REPLAY_EXAMPLES = `
  sluicegate replay access.log --config limits.yaml --html report.html
  sluicegate replay access.log*.gz --config today.yaml --config stricter.yaml
  zcat access.log.gz | sluicegate replay - --config limits.yaml --key '$http_x_api_key' --format '...'`

const GATE_EXAMPLES = `
  sluicegate gate --follow access.log --window 10s --block '1000 for 10m' --nginx-geo /etc/nginx/verdicts.geo --reload 'nginx -s reload'
  sluicegate gate --follow access.log --from-start --once --dry-run --window 1m --flag 300 --block '1000 below 400 for 1h'
  sluicegate gate --redis redis://127.0.0.1:6379 --stream requests --block 1000 --url http://127.0.0.1:9090 --policy per-client

A threshold is N, "N for TIME" or "N below M for TIME": a verdict begins above N in the window, and ends when the count was below M
(default N / 2) for TIME (default the window). At the end files are emptied; with SIGKILL they are not. A token comes from
--token-file, ${ENVIRONMENT.adminToken} or ${ENVIRONMENT.token}.`

const LOAD_EXAMPLES = `
  sluicegate load http://127.0.0.1:8080 --policy api
  sluicegate load resp://127.0.0.1:6380 --throttle '15 30 60' --arrivals poisson --rate 5000 --keys zipf:10000
  sluicegate load grpc://127.0.0.1:8081 --domain web --descriptor user={key} --closed 32
  sluicegate load 'http://127.0.0.1:3000/items?user={key}' --html report.html

Latency counts from the intended start of each request. Ctrl-C ends the run and prints what was measured. A token comes from ${ENVIRONMENT.token}.`

endWithOutput()

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

/** One path: of several the last would be in force without a word. */
function configOption(text: string): Option {
  return option('-c, --config <path>', text, ENVIRONMENT.config).argParser((path: string, before: string | undefined) => {
    if (before !== undefined) throw new UsageError('--config is given twice: give a folder, whose files are read together')
    return path
  })
}

program
  .command('serve')
  .description('serve the policies of a file, or of the files of a folder; options win over the environment, and that over the files')
  .addOption(configOption('file or folder'))
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
  .addOption(option('--threads <n>', 'the same with worker threads of one process; needs Node.js 22.12 (default 1)', ENVIRONMENT.threads))
  .addOption(option('--candidate <path>', 'file or folder whose decisions are compared, without effect', ENVIRONMENT.candidate))
  .addOption(option('--log-level <level>', 'debug, info, warn, error or silent (default info)', ENVIRONMENT.logLevel))
  .addOption(option('--print-config', 'print the configuration in force, secrets masked, and serve nothing'))
  .addOption(option('--json', 'print addresses, or the configuration, as JSON'))
  .addHelpText('after', SIGNALS)
  .allowExcessArguments(false)
  .action(async (texts: ServeTexts & { config?: string; printConfig?: true; json?: true }) => {
    const path = pathOf(undefined, texts.config)
    const [{ overridesOf }, { withOverrides }, { parseFiles, readConfig }, { configLoader }] = await Promise.all([
      import('./cli/serve-options.js'),
      import('sluicegate-config/overrides.js'),
      import('sluicegate-config/read-config.js'),
      import('sluicegate-config/load-config.js'),
    ])
    const overrides = overridesOf(texts, process.env)
    const read = (files?: readonly ConfigFile[], known?: Known): Config =>
      withOverrides(files === undefined ? readConfig(path, known) : parseFiles(files, known), overrides, known?.tls)
    const loader = configLoader(new URL('./cli/reader-thread.js', import.meta.url))
    const beside = {
      data: loader.data,
      readOther: (path: string) => loader.config(path, undefined, {}),
      read: async (files: readonly ConfigFile[] | undefined, known: Known): Promise<Config> =>
        withOverrides(await loader.config(path, files, known), overrides, known.tls),
    }
    if (!texts.printConfig) return (await import('./cli/serve.js')).serve({ path, read, beside }, { json: texts.json === true })
    const { configObject, shownConfig } = await import('sluicegate-config/shown-config.js')
    const config = read()
    console.log(texts.json ? JSON.stringify(configObject(config)) : shownConfig(config).trimEnd())
  })

program
  .command('check')
  .description('print every fault of a file or folder, with line and column; exit code 1 if there is one')
  .argument('[path]', 'file or folder')
  .addOption(configOption('the same'))
  .addOption(option('--json', 'print faults as JSON'))
  .allowExcessArguments(false)
  .action(async (argument: string | undefined, texts: { config?: string; json?: true }, command: Command) => {
    const path = pathOf(argument, texts.config, command.getOptionValueSource('config') === 'cli')
    const [{ check }, { endOnHungReads }] = await Promise.all([import('./cli/check.js'), import('./cli/hung-reads.js')])
    const read = endOnHungReads()
    process.exitCode = check(path, texts.json === true)
    read()
  })

const timeoutOption = (): Option =>
  option('--timeout <time>', 'how long the service may take to answer').argParser(timeoutOf).default(ANSWER_MS, '5s')
const urlOption = (): Option => option('--url <url>', 'the service, also unix:/PATH', ENVIRONMENT.url).default('http://127.0.0.1:8080')

program
  .command('take')
  .description('take tokens from a running service')
  .argument('<policy>')
  .argument('<key>')
  .addOption(option('--cost <n>', 'tokens').default('1'))
  .addOption(option('--peek', 'only look'))
  .addOption(urlOption())
  .addOption(timeoutOption())
  .addOption(option('--json', 'print the decision as JSON'))
  .addHelpText(
    'after',
    `\nExit codes: ${Object.entries(TAKE_EXIT)
      .map(([outcome, code]) => `${code} ${outcome}`)
      .join(', ')}, 1 error. A token comes from ${ENVIRONMENT.token}.`,
  )
  .allowExcessArguments(false)
  .action(async (policy: string, key: string, flags: { cost: string; url: string; timeout: number; peek?: true; json?: true }) => {
    const { cost, url, timeout: timeoutMs, peek, json } = flags
    process.exitCode = await take({ policy, key, cost, url, timeoutMs, token: tokenOf(), peek: peek === true, json: json === true })
  })

program
  .command('health')
  .description('whether a running service takes requests; exit code 1 if not')
  .addOption(urlOption())
  .addOption(timeoutOption())
  .addOption(option('--json', 'print ready, status and what the service says, as JSON'))
  .allowExcessArguments(false)
  .action(async ({ url, timeout: timeoutMs, json }: { url: string; timeout: number; json?: true }) => {
    const { health } = await import('sluicegate-commands/service/health.js')
    process.exitCode = await health({ url, timeoutMs, json: json === true })
  })

program
  .command('top')
  .description('show the decisions of a running service, each second')
  .addOption(urlOption())
  .addOption(timeoutOption())
  .addOption(option('--samples <n>', 'end after this number').argParser(samplesOf))
  .addOption(option('--json', 'print each sample as JSON'))
  .addHelpText(
    'after',
    `\nCtrl-C ends it. The admin listener shows keys, the HTTP listener pseudonyms. A token comes from ${ENVIRONMENT.adminToken} or ${ENVIRONMENT.token}.`,
  )
  .allowExcessArguments(false)
  .action(async ({ url, timeout: timeoutMs, samples, json }: { url: string; timeout: number; samples?: number; json?: true }) => {
    const { top } = await import('sluicegate-commands/service/top.js')
    await top({ url, timeoutMs, samples, token: tokenOf(), json: json === true }, process.stdout)
  })

program
  .command('replay')
  .description('what the policies of a file would have denied in access logs')
  .argument('<log...>', 'access logs, plain, gzip or zstd; - for standard input')
  .addOption(option('-c, --config <path>', 'file with policies; give it again to compare files').argParser(collected).makeOptionMandatory())
  .addOption(
    option(
      '--format <format>',
      "common, combined, haproxy, json, or the format as nginx's log_format or Apache's LogFormat writes it (default: known from the log)",
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
  .addOption(
    option('--time <template>', 'what the time is made of, for example $event.at or "$date $time" (default: known from the format)'),
  )
  .addOption(option('--ipv6-subnet <bits>', 'count an IPv6 address by its network of this size (default 56)'))
  .addOption(option('--html <file>', 'write a report with plots'))
  .addOption(option('--denials <file>', 'write each denial as a line of JSON'))
  .addOption(option('--json', 'print the result as JSON'))
  .addHelpText('after', REPLAY_EXAMPLES)
  .action(async (logs: string[], flags: ReplayFlags) => (await import('sluicegate-commands/replay/run-replay.js')).runReplay(logs, flags))

program
  .command('gate')
  .description('follow access logs, and flag, throttle or block keys that send too much')
  .addOption(option('--follow <log...>', 'access logs, also through rotation; from their end on'))
  .addOption(option('--redis <url>', 'server of a stream', ENVIRONMENT.redis))
  .addOption(option('--stream <name>', 'a stream of Redis whose entries have the fields key and cost'))
  .addOption(option('--from-start', 'read what is there, too'))
  .addOption(option('--once', 'read from the start to the end, and stop'))
  .addOption(option('--format <format>', 'of the log, as for replay (default: known from the log)'))
  .addOption(option('--key <template>', 'what is counted').default('$remote_addr'))
  .addOption(option('--time <template>', 'what the time is made of, as for replay'))
  .addOption(option('--ipv6-subnet <bits>', 'count an IPv6 address by its network of this size (default 56)'))
  .addOption(option('--match <request>', 'which requests count, such as "POST /login" or "/api/*" (default all)'))
  .addOption(option('--cost <variable>', 'count this, such as $body_bytes_sent, instead of requests'))
  .addOption(option('--window <time>', 'over which a key is counted').default('10s'))
  .addOption(option('--flag <threshold>', 'flag a key above it'))
  .addOption(option('--throttle <threshold>', 'throttle it'))
  .addOption(option('--block <threshold>', 'block it'))
  .addOption(option('--width <n>', 'counters in a row of the sketch, a power of two (default 32768)'))
  .addOption(option('--max-verdicts <n>', 'keys with a verdict at once (default 10000)'))
  .addOption(option('--interval <time>', 'between two looks at the logs').default('500ms'))
  .addOption(option('--nginx-geo <file>', 'write verdicts on addresses as lines of an nginx geo'))
  .addOption(option('--nginx-map <file>', 'write verdicts as lines of an nginx map'))
  .addOption(option('--deny-list <file>', 'write blocked keys, one a line'))
  .addOption(option('--reload <command>', 'run it after a file has changed, such as "nginx -s reload"'))
  .addOption(option('--reload-every <time>', 'write and reload at most this often').default('2s'))
  .addOption(option('--url <url>', 'a running service whose policy blocks the keys; its admin listener, also unix:/PATH'))
  .addOption(option('--policy <name>', 'the policy of that service'))
  .addOption(option('--penalty <tokens>', 'charge a throttled key this many tokens there'))
  .addOption(option('--token-file <file>', 'file with the token of that service'))
  .addOption(option('--dry-run', 'write nothing, run nothing, call nothing'))
  .addOption(option('--json', 'print verdicts and summaries as lines of JSON'))
  .addHelpText('after', GATE_EXAMPLES)
  .allowExcessArguments(false)
  .action(async (flags: GateFlags) => {
    const [{ runGate }, { gateOutput }] = await Promise.all([
      import('sluicegate-commands/gate/run-gate.js'),
      import('sluicegate-commands/gate/gate-screen.js'),
    ])
    await runGate(flags, tokenOf(), gateOutput(flags.json === true))
  })

program
  .command('load')
  .description('send load to a service, or to a limiter in this process, and measure it')
  .argument('<target>', 'http://HOST:PORT, resp://HOST:PORT, grpc://HOST:PORT, redis://HOST:PORT, unix:/PATH, or memory')
  .addOption(option('--policy <name>', 'the policy to take from'))
  .addOption(option('--rate <n>', 'requests a second').default('1000'))
  .addOption(option('--duration <time>', 'length of the run').default('10s'))
  .addOption(option('--arrivals <kind>', 'when requests are due: constant, poisson, ramp (see --to-rate) or burst').default('constant'))
  .addOption(option('--to-rate <n>', 'requests a second at the end of a ramp'))
  .addOption(option('--burst <n>', 'requests at once in bursts (default 100)'))
  .addOption(option('--closed <callers>', 'a closed loop in place of a rate: each caller waits for its answer'))
  .addOption(
    option('--keys <keys>', 'hot, uniform:N, zipf:N, zipf:N:EXPONENT, or file:PATH with a key on each line').default('uniform:1000'),
  )
  .addOption(option('--cost <n>', 'tokens of each request').default('1'))
  .addOption(option('--connections <n>', 'connections of each process').default('16'))
  .addOption(option('--processes <n>', 'processes that share the load').default('1'))
  .addOption(option('--seed <n>', 'repeats keys and Poisson arrivals of a run that printed it'))
  .addOption(option('--throttle <burst count period>', 'resp: CL.THROTTLE with these numbers in place of a policy'))
  .addOption(option('--domain <name>', "grpc: Envoy's ShouldRateLimit in place of a policy"))
  .addOption(option('--descriptor <key=value>', 'grpc: an entry of the descriptor; {key} stands for the key').argParser(collected))
  .addOption(option('--config <file>', 'memory and redis: the file with the policy'))
  .addOption(option('--warm-up <time>', 'the same load before, without being measured').default('0s'))
  .addOption(option('--grace <time>', 'how long answers are awaited at the end').default('5s'))
  .addOption(option('--record <file>', 'append each answer: sent and answered in microseconds, outcome, key'))
  .addOption(option('--html <file>', 'write a report with plots'))
  .addOption(option('--json', 'print the result as JSON'))
  .addOption(option('--allow-remote', 'allow a target on another machine'))
  .addHelpText('after', LOAD_EXAMPLES)
  .allowExcessArguments(false)
  .action(async (target: string, flags: LoadFlags) => {
    const [{ load }, { engineTarget }] = await Promise.all([
      import('sluicegate-commands/load/load-command.js'),
      import('./cli/engine-target.js'),
    ])
    const program = { openEngine: engineTarget, processFile: fileURLToPath(new URL('./cli/load-process.js', import.meta.url)) }
    await load(target, flags, variableOf(ENVIRONMENT.token), program)
  })

try {
  if (process.argv.length <= 2) throw new UsageError('say what to do: serve, check, take, health, top, replay, gate, load or --help')
  await program.parseAsync()
} catch (error) {
  if (error instanceof ConfigError) fail(error.message, 1)
  else if (error instanceof UsageError) fail(`sluicegate: ${error.message}`, error.exitCode)
  else if (isOutOfFiles(error)) fail(`sluicegate: ${OUT_OF_FILES}`, 1)
  else if (!(error instanceof CommanderError)) throw error
  else if (error.exitCode !== 0) fail(`sluicegate: ${error.message.replace(/^error: /, '').replaceAll('\n', ' ')}; see --help`, 2)
}

/** @param config of the command line, or of the environment, over which an argument wins. */
function pathOf(argument: string | undefined, config: string | undefined, isWritten = false): string {
  if (argument !== undefined && isWritten)
    throw new UsageError(`two paths are given, ${argument} and --config ${config}: give one; a folder's files are read together`)
  const path = argument ?? config
  if (path === undefined) throw new UsageError('say which file or folder: --config PATH')
  if (path === '') throw new UsageError('the path of the configuration is empty: say which file or folder')
  return path
}

function tokenOf(): string | undefined {
  return variableOf(ENVIRONMENT.adminToken) ?? variableOf(ENVIRONMENT.token)
}

/** A secret of the environment. One that is empty was to be something. */
function variableOf(name: string): string | undefined {
  const secret = process.env[name]
  if (secret === '') throw new UsageError(`${name} is empty: set it, or leave it out`)
  return secret
}

/** An option that may be given again. */
function collected(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text]
}

function timeoutOf(text: string): number {
  const ms = timeSpanMs(text)
  if (ms === undefined || ms < 1 || ms > MOST_TIMEOUT_MS)
    throw new UsageError(`--timeout must be such as 500ms or 5s, at most 1h, not "${text}"`)
  return ms
}

function samplesOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--samples must be an integer from 1, not "${text}"`)
  return Number(text)
}

function fail(message: string, exitCode: number): void {
  // It may hold what a server has answered.
  console.error(printableLines(message))
  process.exitCode = exitCode
}
