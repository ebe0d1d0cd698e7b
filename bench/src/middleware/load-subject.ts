// The process that asks, so that what asking costs is not the server's. Reads a job a line, and answers each with a line of JSON.
import { createInterface } from 'node:readline'
import { type LoadJob, load } from './load.js'

console.log('ready')
for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await load(JSON.parse(line) as LoadJob)))
