/** The worker that simulates, so that the page stays responsive. */
import { config } from 'zod'
import type { Report, Request } from '../messages.js'
import { runScenario } from '../run.js'

// The content security policy forbids compiled checks.
config({ jitless: true })

const post = (report: Report) => postMessage(report)

addEventListener('message', ({ data }: MessageEvent<Request>) => {
  void answer(data).catch((error: Error) => post({ kind: 'failed', message: error.message }))
})

async function answer(request: Request): Promise<void> {
  if (request.kind === 'run') return runScenario(request.values, request.source, post)
  // The fuzzer is as large as the rest, and most visitors do not need it.
  const { searchViolation } = await import('../search.js')
  searchViolation(request.repair, request.seed, post)
}
