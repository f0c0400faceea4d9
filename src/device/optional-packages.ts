/** Optional packages of devices, loaded from this program's dependencies or from a folder per device. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

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
