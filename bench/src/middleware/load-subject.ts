// The process that asks, so that what asking costs is not the server's. Reads a job a line, and answers each with a line of JSON.
import { answerLines } from '../line-process.js'
import { type LoadJob, load } from './load.js'

await answerLines((line) => load(JSON.parse(line) as LoadJob))
