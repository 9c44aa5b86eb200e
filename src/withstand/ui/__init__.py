"""The page of ``withstand ui``: what was measured, as a list that can be followed, opened and compared.

It knows Starlette and uvicorn (the extra ``ui``); nothing below it does. It writes nothing into the folders it shows.
"""
