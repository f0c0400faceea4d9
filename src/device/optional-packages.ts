/**
 * Packages of the backends: optional ones, loaded from this program's dependencies or from a folder per device, and what their
 * backends have in common.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import * as tf from '#tfjs'

/** The folder of a device's packages: ADMB_TENSORFLOW or ADMB_WEBGPU, by default a folder in the user's cache. */
export function packageFolder(device: 'tensorflow' | 'webgpu'): string {
  const { XDG_CACHE_HOME } = process.env
  const folder = process.env[`ADMB_${device.toUpperCase()}`]
  return folder ?? join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'admb', device)
}

/** @returns a `require` function that resolves the package. @throws Error if the package is not installed */
export function requireFrom(name: string, folder: string): NodeJS.Require {
  const locations = [import.meta.url, join(folder, 'package.json')]
  const found = locations.map(location => createRequire(location)).find(require => isInstalled(require, name))
  if (found === undefined) throw new Error(`the package ${name} is not installed`)
  return found
}

function isInstalled(require: NodeJS.Require, name: string): boolean {
  return (require.resolve.paths(name) ?? []).some(folder => existsSync(join(folder, name, 'package.json')))
}

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
