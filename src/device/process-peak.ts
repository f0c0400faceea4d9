/** Memory of devices that live in the process's own memory: nothing but the whole process tells what is really taken. */

/** @returns how far the process has grown, at most, beyond what it had when this was called; bytes */
export function processPeak(): () => number {
  const before = process.memoryUsage.rss()
  return () => Math.max(0, process.resourceUsage().maxRSS * 1024 - before)
}
