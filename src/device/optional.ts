/** Packages that the program can do without: they are looked for when a device needs them, not when it is built. */

/** @throws Error saying that the package is not installed, or why it does not load */
export async function optionalImport(name: string): Promise<unknown> {
  try {
    return await import(name)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isMissing = code?.endsWith('MODULE_NOT_FOUND') && message.includes(`'${name}'`)
    throw isMissing ? new Error(`the package ${name} is not installed`) : error
  }
}
