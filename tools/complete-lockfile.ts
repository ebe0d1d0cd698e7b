import { readFileSync, writeFileSync } from 'node:fs'
import { type Lockfile, missingPlatforms } from './lockfile-platforms.js'

// Run after `npm install` where the registry at hand does not mirror every platform's binaries: `npm ci` refuses a lockfile
// that does not name them all, even those it would not install. They get a checksum from the first install that fetches them.
const FILE = 'package-lock.json'
const lockfile = JSON.parse(readFileSync(FILE, 'utf8')) as Lockfile
const missing = missingPlatforms(lockfile)
const packages = Object.entries({ ...lockfile.packages, ...missing }).sort(([a], [b]) => a.localeCompare(b, 'en'))
writeFileSync(FILE, `${JSON.stringify({ ...lockfile, packages: Object.fromEntries(packages) }, null, 2)}\n`)
console.log(Object.keys(missing).length === 0 ? `${FILE} is complete` : `Added to ${FILE}: ${Object.keys(missing).join(', ')}`)
