// A worker answers requests: it looks up verdicts and sends what it answered. The main thread counts, and gives the verdicts.
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { attachGate, createGate } from 'sluicegate/gate'

if (isMainThread) {
  const gate = createGate({ window: '10s', block: { above: 100, for: '10m' } })
  const worker = new Worker(new URL(import.meta.url), { workerData: gate.handle() })
  for (let second = 1; second <= 3; second++) {
    worker.postMessage('answer the requests of a second')
    const [{ passed, records }] = await once(worker, 'message')
    console.log(`second ${second}: ${passed.abuser} of the abuser and ${passed.client} of the client passed`)
    gate.recordAll(records)
    gate.flush() // else within 100 ms
  }
  console.log(gate.verdicts().map(({ key, verdict, count }) => `${key}: ${verdict} at ${count}`))
  await worker.terminate()
} else {
  const gate = attachGate(workerData)
  parentPort.on('message', () => {
    const passed = { abuser: 0, client: 0 }
    const records = []
    for (const [key, requests] of [
      ['abuser', 80],
      ['client', 8],
    ]) {
      for (let i = 0; i < requests; i++) {
        if (gate.check(key) !== 'block') passed[key]++
        records.push({ key }) // also when refused: who goes on stays blocked
      }
    }
    parentPort.postMessage({ passed, records })
  })
}

// Prints:
//   second 1: 80 of the abuser and 8 of the client passed
//   second 2: 80 of the abuser and 8 of the client passed
//   second 3: 0 of the abuser and 8 of the client passed
//   [ 'abuser: block at 240' ]
