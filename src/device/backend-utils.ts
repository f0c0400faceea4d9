/** Helpers shared by the backends. */
import * as tf from '#tfjs'

/** Runs `work` with the warnings of TensorFlow.js off: its start-up message, and kernels that are registered twice. */
export function withoutWarnings(work: () => void): void {
  const wasProduction = tf.env().getBool('PROD')
  tf.env().set('PROD', true)
  try {
    work()
  } finally {
    tf.env().set('PROD', wasProduction)
  }
}

/**
 * For devices that use the process's own memory, whose allocations cannot be measured separately.
 * @returns a function that returns the peak growth of the process since this call, in bytes
 */
export function processPeak(): () => number {
  const before = process.memoryUsage.rss()
  return () => Math.max(0, process.resourceUsage().maxRSS * 1024 - before)
}
