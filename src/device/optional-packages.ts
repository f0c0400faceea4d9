/** Packages that the program can do without: they are looked for when a device needs them, beside the program or in a folder of the device's. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The folder of a device's packages: what ADMB_TENSORFLOW or ADMB_WEBGPU says, or a place in the user's cache. */
export function packageFolder(device: 'tensorflow' | 'webgpu'): string {
  const { XDG_CACHE_HOME } = process.env
  const named = process.env[`ADMB_${device.toUpperCase()}`]
  return named ?? join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'admb', device)
}

/** @returns what requires the package from where it is. @throws Error saying that it is not installed */
export function requireFrom(name: string, folder: string): NodeJS.Require {
  const places = [import.meta.url, join(folder, 'package.json')]
  const place = places.map(place => createRequire(place)).find(require => isInstalled(require, name))
  if (place === undefined) throw new Error(`the package ${name} is not installed`)
  return place
}

function isInstalled(require: NodeJS.Require, name: string): boolean {
  return (require.resolve.paths(name) ?? []).some(folder => existsSync(join(folder, name, 'package.json')))
}
