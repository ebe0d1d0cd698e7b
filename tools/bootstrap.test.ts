import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { IS_LONG_RUN, longTest } from './long-test.js'

// The set-up is plain JavaScript, so that it runs before anything is compiled; it has no types to import.
const setup = (file: string) => import(new URL(`../setup/${file}`, import.meta.url).href)
const BOOTSTRAP = fileURLToPath(new URL('../bootstrap.mjs', import.meta.url))

test('an older Node.js is refused in one clear line', async () => {
  const { requireNode } = await setup('node-version.mjs')
  for (const old of ['18.20.4', '20.18.3'])
    assert.throws(() => requireNode('20.19.0', old), new RegExp(`needs Node.js 20.19.0 or newer; this is ${old}`))
  for (const fit of ['20.19.0', '20.20.2', '22.1.0']) assert.doesNotThrow(() => requireNode('20.19.0', fit))
})

test('a folder or a file chooses the tests below it, sources or compiled', async () => {
  const { chooseTests } = await setup('tests.mjs')
  assert.deepEqual(chooseTests(['tools/bootstrap.test.ts']).files, ['tools/dist/bootstrap.test.js'])
  assert.deepEqual(chooseTests(['tools/dist/bootstrap.test.js']).files, ['tools/dist/bootstrap.test.js'])
  const { files } = chooseTests(['tools/'])
  assert.ok(files.length > 1)
  assert.ok(files.every((file: string) => file.startsWith('tools/dist/')))
  assert.ok(chooseTests([], () => []).files.length > files.length)
})

test('a part of a path or a glob chooses the test files that it matches', async () => {
  const { chooseTests } = await setup('tests.mjs')
  const chosen = (...args: readonly string[]): readonly string[] => chooseTests(args).files
  assert.deepEqual(chosen('bootstrap.t'), ['tools/dist/bootstrap.test.js'])
  assert.deepEqual(chosen('tools/*strap.test.ts'), ['tools/dist/bootstrap.test.js'])
  assert.deepEqual(chosen('{bootstrap,gate-rules}.test.ts'), ['tools/dist/bootstrap.test.js', 'tools/dist/gate-rules.test.js'])
  assert.deepEqual(chosen('tools/dist/boot*'), ['tools/dist/bootstrap.test.js'])
  assert.deepEqual(chosen('**/gate-r?les*'), ['tools/dist/gate-rules.test.js'])
  assert.deepEqual(chosen('gate-rules', 'bootstrap.test'), ['tools/dist/bootstrap.test.js', 'tools/dist/gate-rules.test.js'])
  const below = chosen('packages/testkit/**/*oracle*')
  assert.ok(below.length > 1 && below.every((file) => /^packages\/testkit\/dist\/.*oracle/.test(file)))
})

test('a long run has every test file, also those of long tests', async () => {
  const { chooseTests } = await setup('tests.mjs')
  const isLong = (file: string): boolean => file.endsWith('.long.test.js')
  const daily: readonly string[] = chooseTests([], () => []).files
  const every: readonly string[] = chooseTests(['--long']).files
  const [long = '', ...others] = every.filter(isLong)
  assert.deepEqual(
    every.filter((file) => !isLong(file)),
    daily,
  )
  assert.ok(others.length > 0)
  assert.deepEqual(chooseTests(['--long', long]).files, [long])
  assert.throws(() => chooseTests([long]), /No test files match .*; npm run test:long has files that match/)
})

test('folders around the product that did not change have no tests in a short run, unless named', async () => {
  const { chooseTests } = await setup('tests.mjs')
  const unchanged = () => ['bench', 'packages/testkit']
  const { files, unchanged: left } = chooseTests([], unchanged) as { files: string[]; unchanged: string[] }
  assert.deepEqual(left, unchanged())
  const isOf = (folder: string): boolean => files.some((file) => file.startsWith(folder))
  assert.deepEqual(['bench/', 'packages/testkit/', 'lab/', 'tools/', 'packages/sluicegate/'].map(isOf), [false, false, true, true, true])
  for (const all of [['bench'], ['--long']]) {
    const chosen: string[] = chooseTests(all, unchanged).files
    assert.ok(chosen.some((file) => file.startsWith('bench/')))
  }
})

test('options go to Node.js, and do not narrow the choice of tests', async () => {
  const { chooseTests } = await setup('tests.mjs')
  const { files, nodeOptions } = chooseTests(['--test-only'])
  assert.deepEqual({ files, nodeOptions }, { files: chooseTests([]).files, nodeOptions: ['--test-only'] })
  for (const args of [['--name', 'drift'], ['--name=drift']]) assert.deepEqual(chooseTests(args).nodeOptions, ['--test-name-pattern=drift'])
  assert.throws(() => chooseTests(['--name']), /--name needs/)
})

test('a choice without tests is refused, instead of passing with none', async () => {
  const { chooseTests } = await setup('tests.mjs')
  assert.throws(() => chooseTests(['packages/nowhere']), /No test files match "packages\/nowhere"/)
  assert.throws(() => chooseTests(['tools', 'no*where']), /No test files match "no\*where"/)
})

test('an unknown task is one line and a failure', () => {
  const { status, stderr } = spawnSync(process.execPath, [BOOTSTRAP, 'tset'], { encoding: 'utf8' })
  assert.equal(status, 1)
  assert.equal(
    stderr.trim(),
    'no task "tset"; there are build, api, pack, start, test, test:watch, prove, bench, bench:redis, bench:postgres, bench:edge, bench:workers, bench:server, bench:regions, bench:holds, bench:replay, chaos, lab, lab:compare, lab:simulate, plots, site, executable, deb, image, sbom, notes, check',
  )
})

test('each command that runs tests explains itself, and runs none', () => {
  for (const task of IS_LONG_RUN ? ['test', 'test:watch'] : ['test']) {
    const { status, stdout } = spawnSync(process.execPath, [BOOTSTRAP, task, '--help', 'packages/nowhere'], { encoding: 'utf8' })
    assert.equal(status, 0)
    assert.match(stdout, new RegExp(`^npm (run )?${task} -- \\[PATTERN\\]`))
  }
})

test('tests name the packages that they need, and no others', async () => {
  const { commandsFor } = await setup('system-packages.mjs')
  const needed = (...files: readonly string[]): string[] => commandsFor(files).map(({ debian }: { debian: string }) => debian)
  assert.deepEqual(needed('packages/sluicegate/dist/redis/runners/cluster.test.js'), ['redis-server', 'faketime', 'redis-tools'])
  assert.deepEqual(needed('packages/sluicegate/dist/duration.test.js', 'tools/dist/bootstrap.test.js'), [])
  assert.ok(needed('packages/testkit/dist/servers/servers.test.js').includes('redis-server'))
})

/** A machine with only a shell, in a folder; its `apt-get` records its arguments and installs a server that does nothing. */
function bareMachine({ installs = true } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-path-'))
  const [bin, asked, policy] = [join(folder, 'bin'), join(folder, 'asked'), join(folder, 'policy-rc.d')]
  const shell = spawnSync('sh', ['-c', 'command -v sh'], { encoding: 'utf8' }).stdout.trim()
  const noted = `echo "$@" >> ${asked}; test -x ${policy} && echo 'no services' >> ${asked}`
  const installed = `test "$1" != install || { echo '#!/bin/sh' > ${bin}/redis-server; /bin/chmod +x ${bin}/redis-server; }`
  spawnSync('mkdir', [bin])
  symlinkSync(shell, join(bin, 'sh'))
  writeFileSync(join(bin, 'apt-get'), `#!/bin/sh\n${noted}\n${installs ? installed : ''}\n`)
  chmodSync(join(bin, 'apt-get'), 0o755)
  return {
    /** Where its server is once it is installed. */
    server: join(bin, 'redis-server'),
    /** The result of the Redis tests there, or of tests that need something else, for a user. */
    requires(uid: number, needed?: object) {
      const program = [
        `const { commandsFor, requireCommands } = await import(${JSON.stringify(new URL('../setup/system-packages.mjs', import.meta.url).href)})`,
        needed === undefined
          ? "const needed = commandsFor(['lab/dist/a.test.js']).filter(({ command }) => command === 'redis-server')"
          : `const needed = [${JSON.stringify(needed)}]`,
        `try { await requireCommands(needed, { uid: ${uid}, servicePolicy: ${JSON.stringify(policy)} }) }`,
        'catch (error) { console.log(error.constructor.name + ": " + error.message) }',
      ]
      const env = { PATH: bin }
      return spawnSync(process.execPath, ['--input-type=module', '-e', program.join('\n')], { encoding: 'utf8', env }).stdout
    },
    asked: () => (existsSync(asked) ? readFileSync(asked, 'utf8') : ''),
    leavesPolicy: () => existsSync(policy),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

test('root on a machine without a server gets one by apt, which may start no service; the second run calls nothing', () => {
  using machine = bareMachine()
  assert.equal(machine.requires(0), '')
  const asked = 'update -q\nno services\ninstall -y -q --no-install-recommends redis-server\nno services\n'
  assert.equal(machine.asked(), asked)
  assert.equal(machine.leavesPolicy(), false)
  assert.equal(machine.requires(0), '')
  assert.equal(machine.asked(), asked)
})

test('a file that tests need, and that no program stands for, is installed likewise', () => {
  using machine = bareMachine()
  assert.equal(machine.requires(0, { file: machine.server, debian: 'redis-server', why: 'a test' }), '')
  assert.equal(machine.asked(), 'update -q\nno services\ninstall -y -q --no-install-recommends redis-server\nno services\n')
  assert.ok(existsSync(machine.server))
})

longTest('any other user gets one line: what is missing, why, and what to type', () => {
  using machine = bareMachine()
  const why = 'redis-server (limiters in Redis are tried on servers, clusters and sentinels)'
  assert.equal(machine.requires(1000), `Refusal: This needs ${why}. On Debian or Ubuntu: sudo apt-get install redis-server\n`)
  assert.equal(machine.asked(), '')
})

longTest('a package that does not bring its program is one line, too', () => {
  using machine = bareMachine({ installs: false })
  assert.equal(machine.requires(0), 'Refusal: Installed, and yet not there: redis-server, of redis-server\n')
})

/** The last line of continuous integration and whether it passed, with `npm` replaced by a script. */
function integration(npm: string): { last: string | undefined; status: number | null; stdout: string } {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-ci-'))
  writeFileSync(join(folder, 'npm'), `#!/bin/sh\n${npm}\n`)
  chmodSync(join(folder, 'npm'), 0o755)
  const run = fileURLToPath(new URL('../../.ci/run', import.meta.url))
  const { stdout, status } = spawnSync('bash', [run], { encoding: 'utf8', env: { ...process.env, PATH: `${folder}:${process.env.PATH}` } })
  rmSync(folder, { recursive: true, force: true })
  return { last: stdout.trim().split('\n').at(-1), status, stdout }
}

test('continuous integration counts the tests, and passes when all and the gate do', () => {
  const summary = (pass: number, fail: number, others = 0): string => `printf '# pass ${pass}\\n# fail ${fail}\\n# skipped ${others}\\n'`
  const runs = (tests: string, gate = 'true'): string => `case "$*" in "test -- --long") ${tests};; "run check") ${gate};; *) exit 9;; esac`
  const lastAndStatus = (npm: string) => {
    const { last, status } = integration(npm)
    return [last, status]
  }
  assert.deepEqual(lastAndStatus(runs(`echo '# pass 7'; ${summary(12, 0)}`)), ['12 passed, 0 failed', 0])
  assert.deepEqual(lastAndStatus(runs(`${summary(11, 1)}; exit 1`)), ['11 passed, 1 failed', 1])
  if (!IS_LONG_RUN) return
  assert.deepEqual(lastAndStatus(runs(summary(11, 0, 1))), ['11 passed, 1 failed', 1])
  assert.deepEqual(lastAndStatus(runs('exit 1')), ['0 passed, 1 failed', 1])
  assert.deepEqual(lastAndStatus(runs(summary(12, 0), 'exit 1')), ['12 passed, 0 failed', 1])
})

longTest('continuous integration runs a few failed files once more, and lists those that passed then', () => {
  const failing = (files: number): string => {
    const record = { files: Array.from({ length: files }, (_, i) => `${i}.js`), failures: [{ name: 'sometimes' }] }
    return `echo '${JSON.stringify(record)}' >"$SLUICEGATE_FAILED_TESTS"; printf '# pass 11\\n# fail 1\\n'; exit 1`
  }
  const runs = (test: string, again: string) => `case "$*" in "test -- --long") ${test};; "test -- --long --failed") ${again};; esac`
  const passes = integration(runs(failing(8), "printf '# pass 4\\n# fail 0\\n'"))
  assert.deepEqual([passes.last, passes.status], ['12 passed, 0 failed', 0])
  assert.match(passes.stdout, /Of 1 failures 0 failed again. Failed at first:\n- sometimes\n/)
  const fails = integration(runs(failing(8), "printf '# pass 3\\n# fail 1\\n'; exit 1"))
  assert.deepEqual([fails.last, fails.status], ['11 passed, 1 failed', 1])
  if (!IS_LONG_RUN) return
  // Too many to be flaky, and a second run that did not come to its end.
  assert.deepEqual(integration(runs(failing(9), "printf '# pass 4\\n# fail 0\\n'")).last, '11 passed, 1 failed')
  assert.equal(integration(runs(failing(1), 'exit 1')).last, '11 passed, 1 failed')
})

test('each test file runs once, alone or in a group, and those that need a process of their own are alone', async () => {
  const { chooseTests } = await setup('tests.mjs')
  const { groupTests } = await setup('test-groups.mjs')
  const { files } = chooseTests([], () => [])
  for (const chosen of [files, chooseTests(['--long']).files]) {
    const { single, groups } = groupTests(chosen)
    assert.deepEqual([...single, ...groups.flat()].sort(), [...chosen].sort())
    assert.ok(single.length > 0 && groups.length > 1)
  }
  const many = Array.from({ length: 100 }, (_, i) => `a/dist/alone-long-${i}.test.js`)
  const named = ['a/dist/clock.alone.test.js', 'a/dist/soak.long.test.js']
  assert.deepEqual(groupTests([...named, ...many]).single, named.toReversed(), 'what takes long begins first')
  // A few files are faster by themselves, with output that is easier to read.
  assert.deepEqual(groupTests(files.slice(0, 10)), { single: files.slice(0, 10), groups: [] })
})

test('what failed in a run stands once more at its end, and runs again by itself', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'failed-tests-'))
  const file = join(folder, 'sometimes.test.mjs')
  const failing = "import { test } from 'node:test'\ntest('works', () => {})\ntest('fails', () => { throw new Error('once') })\n"
  writeFileSync(file, failing)
  const record = join(folder, 'failed.json')
  const reporter = fileURLToPath(new URL('../setup/failed-tests-reporter.mjs', import.meta.url))
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  spawnSync(process.execPath, ['--test', `--test-reporter=${reporter}`, `--test-reporter-destination=${record}`, file], { env })
  const { files, failures, counts } = JSON.parse(readFileSync(record, 'utf8'))
  assert.deepEqual(files, [file])
  assert.deepEqual(
    failures.map(({ name }: { name: string }) => name),
    ['fails'],
  )
  assert.match(failures[0].message, /once/)
  assert.equal(counts.pass, 1)
  assert.equal(counts.fail, 1)
  rmSync(folder, { recursive: true })
})

longTest('of a group the files that failed run again, and hooks run around the tests of their file', async () => {
  const { writeGroups, isGroup } = await setup('test-groups.mjs')
  const folder = mkdtempSync(join(tmpdir(), 'grouped-tests-'))
  const source = (name: string, body: string): string => {
    const path = join(folder, name)
    writeFileSync(path, `import assert from 'node:assert'\nimport { before, test } from 'node:test'\n${body}`)
    return path
  }
  const hook = 'let ran = 0\nbefore(() => { ran++ })\n'
  const files = [
    source('passes.test.mjs', `${hook}test('one', () => assert.equal(ran, 1))\ntest('two', () => assert.equal(ran, 1))\n`),
    source('fails.test.mjs', `${hook}test('three', () => assert.equal(ran, 2))\n`),
    source('broken.test.mjs', "throw new Error('at once')\n"),
  ]
  const [group = '', ...others] = writeGroups([files, ...Array.from({ length: 10 }, () => files.slice(0, 1))], folder)
  assert.ok(isGroup(group))
  // `node --test` sorts them.
  assert.deepEqual([group, ...others], [group, ...others].sort())
  const record = join(folder, 'failed.json')
  const reporter = fileURLToPath(new URL('../setup/failed-tests-reporter.mjs', import.meta.url))
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  spawnSync(process.execPath, ['--test', `--test-reporter=${reporter}`, `--test-reporter-destination=${record}`, group], {
    cwd: folder,
    env,
  })
  const failed = JSON.parse(readFileSync(record, 'utf8'))
  assert.deepEqual(failed.files.sort(), [files[2], files[1]])
  assert.deepEqual(failed.failures.map(({ name }: { name: string }) => name).sort(), [files[2], 'three'].sort())
  assert.equal(failed.counts.pass, 2)
  rmSync(folder, { recursive: true })
})

/** What `node --test` says of a group of files, each of them tests. */
function ranGroup(...bodies: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'grouped-tests-'))
  const program = [
    `const { writeGroups } = await import(${JSON.stringify(new URL('../setup/test-groups.mjs', import.meta.url).href)})`,
    `console.log(writeGroups([${JSON.stringify(bodies.map((_, i) => `${i}.test.mjs`))}], ${JSON.stringify(folder)})[0])`,
  ]
  for (const [i, body] of bodies.entries())
    writeFileSync(
      join(folder, `${i}.test.mjs`),
      `import assert from 'node:assert'\nimport { after, afterEach, before, beforeEach, describe, test } from 'node:test'\n${body}`,
    )
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const group = spawnSync(process.execPath, ['--input-type=module', '-e', program.join('\n')], { encoding: 'utf8' }).stdout.trim()
  const { stdout, status } = spawnSync(process.execPath, ['--test', '--test-reporter=tap', group], { cwd: folder, env, encoding: 'utf8' })
  rmSync(folder, { recursive: true })
  return { stdout, status, results: [...stdout.matchAll(/^( *(?:not )?ok) \d+ - (.*)$/gm)].map(([, how, name]) => `${how} ${name}`) }
}

longTest('in a group suites nest, also those that wait, and hooks and mocks are those of their suites', () => {
  const { status, results } = ranGroup(
    `await 0
     const steps = []
     before(() => steps.push('before'))
     beforeEach(() => steps.push('beforeEach'))
     afterEach(() => steps.push('afterEach'))
     after(() => assert.deepEqual(steps, ['before', 'beforeEach', 'afterEach', 'beforeEach', 'afterEach']))
     test('mocks', (t) => { t.mock.method(Math, 'random', () => 7); assert.equal(Math.random(), 7) })
     test('mocks no more', () => assert.notEqual(Math.random(), 7))`,
    `describe('outer', () => {
       describe('inner', async () => { await 0; test('deep', async (t) => { await 0; await t.test('sub', async () => { await 0 }) }) })
       test('beside', async () => { await 0 })
     })`,
  )
  assert.deepEqual(results, [
    ...['    ok mocks', '    ok mocks no more', 'ok 0.test.mjs'],
    ...['                ok sub', '            ok deep', '        ok inner', '        ok beside', '    ok outer', 'ok 1.test.mjs'],
  ])
  assert.equal(status, 0)
})

longTest('in a group what nothing caught is a failure of the test that runs, or of the group, and says where', () => {
  const running = ranGroup(
    `const wait = () => new Promise((done) => setTimeout(done, 1e4).unref())
     test('throws', () => { setTimeout(function inTimer() { throw new Error('thrown') }, 1); return wait() })
     test('rejects', () => { setTimeout(function inRejected() { Promise.reject(new Error('rejected')) }, 1); return wait() })`,
  )
  assert.deepEqual(running.results, ['    not ok throws', '    not ok rejects', 'not ok 0.test.mjs'])
  for (const where of ['inTimer', 'inRejected']) assert.match(running.stdout, new RegExp(`stack: .*\\s+.*${where} `))
  for (const late of ["throw new Error('late')", "Promise.reject(new Error('late'))"]) {
    const ended = ranGroup(`test('ends', () => void setTimeout(function afterIts() { ${late} }, 100))`, "test('other', () => {})")
    assert.deepEqual(ended.results.slice(0, 4), ['    ok ends', 'ok 0.test.mjs', '    ok other', 'ok 1.test.mjs'])
    assert.match(ended.results[4] ?? '', /^not ok .*group-001.mjs$/)
    assert.match(ended.stdout, /^# fail 1$/m)
    assert.match(ended.stdout, /Test "ends" at .*Error: late/)
    assert.equal(ended.status, 1)
  }
})

test('a group that a test ends before the others have run fails', () => {
  const { status, stdout } = ranGroup("test('ends all', () => process.exit(0))", "test('other', () => {})")
  assert.equal(status, 1)
  assert.match(stdout, /one of them called process.exit/)
})

longTest('a group ends, as failed, when a test has left a timer running', () => {
  const { status, stdout, results } = ranGroup("test('leaves', () => void setInterval(() => {}, 100))", "test('other', () => {})")
  assert.deepEqual(results.slice(0, 4), ['    ok leaves', 'ok 0.test.mjs', '    ok other', 'ok 1.test.mjs'])
  assert.equal(status, 1)
  assert.match(stdout, /left open: .*Timeout/)
})

test('no output of a build counts as a source, so that a second build does nothing', async () => {
  const { ROOT, sourcesBelow } = await setup('root.mjs')
  const sources = ['packages', 'tools', 'bench', 'lab', 'site', 'deploy'].flatMap(sourcesBelow)
  const { stdout: ignored } = spawnSync('git', ['check-ignore', '--stdin'], { cwd: ROOT, input: sources.join('\n'), encoding: 'utf8' })
  assert.equal(ignored, '')
})

test('what was compiled from a source that is gone is removed, and nothing else', async () => {
  const { removeStaleOutputs } = await setup('stale-outputs.mjs')
  const home = mkdtempSync(join(tmpdir(), 'stale-outputs-'))
  const files = (folder: string, ...names: readonly string[]): void => {
    for (const name of names) {
      mkdirSync(join(home, folder, name, '..'), { recursive: true })
      writeFileSync(join(home, folder, name), '')
    }
  }
  files('src', 'kept.ts', 'in/kept.ts', 'page/style.css')
  files('dist', 'kept.js', 'kept.d.ts', 'kept.js.map', 'in/kept.js', 'commonjs/gone.cjs', 'src.tsbuildinfo')
  files('dist', 'gone.js', 'gone.d.ts', 'in/gone.js', 'gone/a.js')
  removeStaleOutputs(join(home, 'dist'), join(home, 'src'))
  const left = readdirSync(join(home, 'dist'), { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.'))
  assert.deepEqual(left.sort(), ['commonjs/gone.cjs', 'in/kept.js', 'kept.d.ts', 'kept.js', 'kept.js.map', 'src.tsbuildinfo'])
  removeStaleOutputs(join(home, 'missing'), join(home, 'src'))
  rmSync(home, { recursive: true })
})
