const PATTERNS = `PATTERN is a folder or a file (source or compiled), a part of a path, or a glob in quotes. Without one, all test files run, but for folders
  around the product (tools, bench, lab, site, deploy, testkit) in which nothing changed.
  --long         every test in full length, also those of *.long.test.ts files: what continuous integration runs
  --name TEXT    run only tests whose names match TEXT, a part of a name or a regular expression
  --failed       run only the files with tests that failed in the last run
  --help         this text
Other options that begin with a dash go to "node --test", such as --test-concurrency=1.`

/** The output of `--help` for each command that runs tests. */
export const TEST_HELP = {
  test: `npm test -- [PATTERN]... [options]
Builds what changed, then runs the tests. Long tests run in a short form, or not at all, without --long ("npm run test:long" is the same).

${PATTERNS}

  npm test -- waiting
  npm test -- packages/sluicegate/src/time/clock.test.ts
  npm test -- 'src/redis/lease*' --name 'never over'`,

  'test:watch': `npm run test:watch -- [PATTERN]... [options]
Builds, runs the tests, then compiles what you save and runs again the test files that it concerns. Ctrl+C ends it.
Give a PATTERN: without one the first run takes as long as "npm test". Changes of .lua files, of packages/sluicegate/assembly and of the
dashboard page need "npm run build".

${PATTERNS}`,
}
