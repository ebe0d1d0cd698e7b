import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { Refusal } from './root.mjs'
import { stepBeside } from './run.mjs'

const ON_REDIS = [
  'packages/sluicegate/dist/redis',
  'packages/commands',
  'packages/server',
  'packages/testkit',
  'lab',
  'bench/dist/redis',
  'bench/dist/server',
  'tools/dist/examples',
]

const ON_POSTGRES = [
  'packages/sluicegate/dist/postgres',
  'packages/server',
  'packages/testkit',
  'lab/dist/chaos',
  'bench/dist/postgres',
  'tools/dist/examples',
]
const POSTGRES = '/usr/lib/postgresql/15/bin/postgres'

/** A server named by the caller is not installed. */
const NAMED_SERVER = process.env.SLUICEGATE_REDIS_SERVER

/** Debian's: another Python may come first in the path, without Debian's modules. */
const PYTHON = '/usr/bin/python3'

const EXECUTABLE = 'deploy/dist/executable.long'
const MANIFESTS = 'deploy/dist/manifests.long'
const CLIENTS = 'packages/server/dist/clients.long'
const PROXIES = 'packages/server/dist/proxies.long'
const ADAPTERS = 'tools/dist/store-adapters.long'
const SPRIG = '/usr/share/gocode/src/github.com/Masterminds/sprig'
const GO_YAML = '/usr/share/gocode/src/sigs.k8s.io/yaml'
const LUA_SOCKET = '/usr/share/lua/5.3/socket/http.lua'

/** Real programs that tests use, and the Debian packages that contain them. */
const COMMANDS = [
  {
    command: 'chromium',
    debian: 'chromium',
    usedBy: ['packages/commands', 'packages/server', 'site'],
    why: 'the dashboard, reports and the site are tested in a browser',
  },
  {
    command: 'haproxy',
    debian: 'haproxy',
    usedBy: ['lab', PROXIES],
    why: 'it balances the load over the nodes of the lab, and asks the service',
  },
  { command: 'prometheus', debian: 'prometheus', usedBy: ['lab'], why: 'it scrapes the nodes of the lab' },
  {
    command: 'nginx',
    debian: 'nginx-light',
    usedBy: ['packages/commands', 'packages/server', 'bench/dist/server'],
    why: 'the service is tested and measured behind it',
  },
  { command: 'promtool', debian: 'prometheus', usedBy: ['packages/server'], why: 'metrics, rules and queries are checked with it' },
  {
    command: 'prometheus',
    debian: 'prometheus',
    usedBy: ['packages/server'],
    why: 'it scrapes the service and runs the queries of the dashboard',
  },
  { command: 'zstd', debian: 'zstd', usedBy: ['packages/commands'], why: 'logs packed by zstd are replayed' },
  {
    command: 'openssl',
    debian: 'openssl',
    usedBy: ['packages/server'],
    why: 'encrypted connections are tested with certificates of its making',
  },
  { command: 'spin', debian: 'spin', usedBy: ['packages/testkit'], why: 'the model of the table is checked with Spin' },
  {
    command: 'gcc',
    debian: 'gcc',
    usedBy: ['packages/testkit', 'lab'],
    why: 'Spin compiles its checker with it, and a clock of servers that can be moved is compiled',
  },
  { file: '/usr/include/stdlib.h', debian: 'libc6-dev', usedBy: ['packages/testkit', 'lab'], why: 'gcc compiles with it' },
  {
    command: NAMED_SERVER ?? 'redis-server',
    debian: 'redis-server',
    usedBy: ON_REDIS,
    why: 'limiters in Redis are tried on servers, clusters and sentinels',
  },
  {
    command: 'faketime',
    debian: 'faketime',
    usedBy: ['packages/sluicegate/dist/redis', 'lab'],
    why: 'processes are tested whose wall clocks disagree',
  },
  { command: 'redis-cli', debian: 'redis-tools', usedBy: ON_REDIS, why: 'clusters are made and changed with it' },
  {
    command: 'redis-benchmark',
    debian: 'redis-tools',
    usedBy: ['packages/server', 'bench/dist/server'],
    why: 'the service is tested with it',
  },
  { file: POSTGRES, debian: 'postgresql-15', usedBy: ON_POSTGRES, why: 'limiters in PostgreSQL are tried on a server' },
  { command: 'setpriv', debian: 'util-linux', usedBy: ON_POSTGRES, why: 'PostgreSQL refuses to run as root' },
  { command: 'pgbouncer', debian: 'pgbouncer', usedBy: ON_POSTGRES, why: 'limiters in PostgreSQL are tried behind it' },
  { command: 'memcached', debian: 'memcached', usedBy: [ADAPTERS], why: 'the store of an example is tried on it' },
  { command: 'etcd', debian: 'etcd-server', usedBy: [ADAPTERS], why: 'the store of an example is tried on it' },
  { command: 'wrk', debian: 'wrk', usedBy: ['bench/dist/server'], why: 'the service is measured with it' },
  { command: 'h2load', debian: 'nghttp2-client', usedBy: ['bench/dist/server'], why: 'the load generator is compared with it' },
  { command: PYTHON, module: 'grpc', debian: 'python3-grpcio', usedBy: ['packages/server'], why: 'the service is tested with this client' },
  { command: PYTHON, module: 'redis', debian: 'python3-redis', usedBy: ['packages/server'], why: 'the service is tested with this client' },
  {
    command: PYTHON,
    module: 'grpc_tools',
    debian: 'python3-grpc-tools',
    usedBy: [CLIENTS],
    why: 'the client of docs/clients.md is made with it',
  },
  ...['curl', 'php', 'ruby', 'java'].map((command) => ({
    command,
    debian: { php: 'php-cli', java: 'default-jdk-headless' }[command] ?? command,
    usedBy: [CLIENTS],
    why: 'a program of docs/clients.md is run with it',
  })),
  {
    command: 'go',
    debian: 'golang-go',
    usedBy: [CLIENTS, MANIFESTS],
    why: 'a program of docs/clients.md is run with it, and the chart is rendered',
  },
  { file: SPRIG, debian: 'golang-github-masterminds-sprig-dev', usedBy: [MANIFESTS], why: 'the chart is rendered with its functions' },
  { file: GO_YAML, debian: 'golang-k8s-sigs-yaml-dev', usedBy: [MANIFESTS], why: 'the chart is rendered with it' },
  { command: 'caddy', debian: 'caddy', usedBy: [PROXIES], why: 'it asks the service' },
  { command: 'apache2', debian: 'apache2', usedBy: [PROXIES], why: 'it asks the service' },
  { file: LUA_SOCKET, debian: 'lua-socket', usedBy: [PROXIES], why: 'apache2 asks the service with it' },
  { command: 'strip', debian: 'binutils', usedBy: ['deploy/dist/build-', EXECUTABLE], why: 'it takes the symbols out of the executable' },
  { command: 'umoci', debian: 'umoci', usedBy: [EXECUTABLE], why: 'the image is read with it' },
  { command: 'lintian', debian: 'lintian', usedBy: [EXECUTABLE], why: 'the Debian package is checked with it' },
  { command: 'systemd-nspawn', debian: 'systemd-container', usedBy: [EXECUTABLE], why: 'the Debian package is installed on systemd' },
  { file: '/lib/systemd/systemd', debian: 'systemd', usedBy: [EXECUTABLE], why: 'the Debian package is installed on it' },
  ...Object.entries({ man: 'man-db', ip: 'iproute2', pgrep: 'procps', curl: 'curl' }).map(([command, debian]) => ({
    command,
    debian,
    usedBy: [EXECUTABLE],
    why: 'the image and the Debian package are tested with it',
  })),
]

/** Packages call it before they start a service; exit code 101 forbids the start. */
const SERVICE_POLICY = '/usr/sbin/policy-rc.d'

/** The tests start what they need by themselves: while packages are installed, a policy forbids services. It goes whichever way this ends. */
const INSTALL = `policy=$1; shift
if [ ! -e "$policy" ]; then
  trap '/bin/rm -f "$policy"' EXIT; trap 'exit 130' INT TERM HUP
  printf '#!/bin/sh\\nexit 101\\n' > "$policy" && /bin/chmod 755 "$policy"
fi
apt-get update -q && apt-get install -y -q --no-install-recommends "$@"`

/**
 * Ensures that these programs exist: installs them beside what follows where apt and root allow it, which the answer waits for; else throws
 * a Refusal that names the missing ones.
 */
export function requireCommands(commands, { uid = process.getuid?.(), servicePolicy = SERVICE_POLICY } = {}) {
  const missing = missingOf(commands)
  if (missing.length === 0) return Promise.resolve()
  if (missing.some((each) => nameOf(each) === NAMED_SERVER)) {
    throw new Refusal(`SLUICEGATE_REDIS_SERVER names ${NAMED_SERVER}, which is not there`)
  }
  const names = [...new Set(missing.map(({ debian }) => debian))]
  if (uid === 0 && has('apt-get')) return installed(commands, names, servicePolicy)
  const reasons = missing.map((each) => `${nameOf(each)} (${each.why})`).join(', ')
  throw new Refusal(`This needs ${reasons}. On Debian or Ubuntu: sudo apt-get install ${names.join(' ')}`)
}

async function installed(commands, names, servicePolicy) {
  const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  await stepBeside(`Installing by apt-get: ${names.join(', ')}`, 'sh', ['-c', INSTALL, 'sh', servicePolicy, ...names], env)
  const still = missingOf(commands).map((each) => `${nameOf(each)}, of ${each.debian}`)
  if (still.length > 0) throw new Refusal(`Installed, and yet not there: ${still.join('; ')}`)
}

/** The programs that these compiled files use. */
export function commandsFor(files) {
  return COMMANDS.filter(({ usedBy }) => files.some((file) => usedBy.some((path) => file.startsWith(path))))
}

function nameOf({ command, file }) {
  return command ?? file
}

function missingOf(commands) {
  return commands.filter(({ command, module, file }) => {
    if (file !== undefined) return !existsSync(file)
    return !has(command) || (module !== undefined && !imports(command, module))
  })
}

function imports(python, module) {
  return spawnSync(python, ['-c', `import ${module}`]).status === 0
}

function has(command) {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0
}
