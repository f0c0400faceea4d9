/** The worker that simulates, so that the page stays responsive. */
import { config } from 'zod'
import { runScenario } from '../run.js'
import type { Report, Request } from '../scene.js'

// The content security policy forbids compiled checks.
config({ jitless: true })

const post = (report: Report) => postMessage(report)

addEventListener('message', ({ data: { values, source } }: MessageEvent<Request>) => {
  try {
    runScenario(values, source, post)
  } catch (error) {
    post({ kind: 'failed', message: (error as Error).message })
  }
})
