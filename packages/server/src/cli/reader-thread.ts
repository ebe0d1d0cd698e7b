import { serveReader } from 'sluicegate-config/reader-thread.js'

serveReader()
