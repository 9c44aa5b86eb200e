"""When a doubt is raised: one function a doubt, from a case to the doubt or None. Limits stand beside their reasons."""
