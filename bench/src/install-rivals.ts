// What `npm test` runs before the tests of the benchmarks: several of them need the rivals, and run side by side.
import { installRivals } from './rivals.js'

installRivals()
